"""Fetch a model for compaction, choose one, list them, or try one."""

import argparse
import os
from typing import Any

from daypack.cli.options import add_place
from daypack.cli.terminal import Progress, counted, json_text, safe, safe_line, say
from daypack.config import from_environment, from_file
from daypack.errors import BadConfig, BadInput
from daypack.history.layout import Home
from daypack.llm.catalogue import DEFAULT, MODELS, find_model
from daypack.llm.choice import read_choice
from daypack.llm.folder import find_hub, list_files, pull, read_origin
from daypack.llm.port import default_choice, model_path, open_completer
from daypack.runtime import find_home

SETTING = "compaction_model"
_CHOICE = "none, openai:URL#NAME, llama:PATH or the name of a pulled model"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.set_defaults(actions=True)
    actions = parser.add_subparsers(dest="action", required=True, metavar="pull|use|list|test")
    about = {
        "pull": "Fetch a model; a download that was cut off goes on where it stopped.",
        "use": "Choose the model for compaction.",
        "list": "List the models there are, which are here, and which is in use.",
        "test": "Let a model compact a small conversation; say how long it took and whether the answer is valid.",
    }
    fetching, use, listing, test = (
        actions.add_parser(name, help=what, description=what) for name, what in about.items()
    )
    names = ", ".join(model.name for model in MODELS if model.offered)
    fetching.add_argument("name", nargs="?", default=DEFAULT, help=f"one of {names} (default: {DEFAULT})")
    source = "where from: a hub's address, or that of the .gguf file (default: DAYPACK_MODEL_HUB or the public hub)"
    fetching.add_argument("--from", dest="hub", metavar="URL", help=source)
    fetching.add_argument("--sha256", metavar="HEX", help="what the file must be (default: as the hub announces it)")
    use.add_argument("choice", help=_CHOICE)
    test.add_argument("choice", nargs="?", help=f"{_CHOICE} (default: the one in use)")
    for one in (fetching, use, listing, test):
        add_place(one, session=None)


def run(args: argparse.Namespace) -> int:
    """Do what the action says."""
    home = find_home(args.home, args.uid)
    return {"pull": _pull, "use": _use, "list": _list, "test": _test}[args.action](args, home)


def _pull(args: argparse.Namespace, home: Home) -> int:
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

    choice = _whole(args.choice)
    chosen = read_choice(choice)
    if chosen.kind == "llama":
        model_path(chosen, _models(home))
        _tell_missing_package()
    text = (atomic.read(home.config) or b"").decode("utf-8", "replace")
    written = put_setting(text, SETTING, choice, home.config)
    atomic.make_folders(home.folder)
    atomic.replace(home.config, written.encode())
    print(json_text({SETTING: choice, "path": home.config}) if args.json else f"compaction uses {safe_line(choice)}")
    if os.environ.get("DAYPACK_COMPACTION_MODEL"):
        say("  → DAYPACK_COMPACTION_MODEL is set and decides over config.toml")
    return 0


def _list(args: argparse.Namespace, home: Home) -> int:
    folder = _models(home)
    choice, by = _in_use(home)
    try:
        chosen = read_choice(choice)
    except BadConfig as error:
        say(f"{safe_line(choice)} {safe_line(error.problem)}: {safe_line(error.hint)}")
        chosen = read_choice("none")
    here = list_files(folder)
    found: list[dict[str, Any]] = []
    for model in MODELS:
        path, origin = os.path.join(folder, model.file), read_origin(os.path.join(folder, model.file))
        found.append(
            {
                "name": model.name,
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
        found.append({"name": f"llama:{path}", "offered": True, "path": path, "size_bytes": size, "in_use": used})
    if args.json:
        print(json_text({"in_use": choice, "set_by": by, "models": found}))
        return 0
    width = max(len(one["name"]) for one in found)
    for one in found:
        state = "in use" if one["in_use"] else "here" if one["path"] else "" if one["offered"] else "–"
        size = one["size_bytes"] or one.get("about_bytes", 0)
        languages = f"  {one['languages']}+ languages" if one.get("languages") else ""
        line = f"{one['name']:<{width}}  {state:<6}  {size / 1e9:.1f} GB{languages}  {one.get('note', '')}"
        print(safe_line(line.rstrip()))
    print(f"compaction uses {safe_line(choice)} (set by {by})")
    return 0


def _test(args: argparse.Namespace, home: Home) -> int:
    choice = _whole(args.choice) if args.choice else _in_use(home)[0]
    completer = open_completer(choice, models=_models(home))
    if completer is None:
        hint = "name a model, or fetch one with `daypack model pull`"
        raise BadInput("no model is in use", operation="test model", place=choice, hint=hint)
    from daypack.cli.trial import try_model  # noqa: PLC0415 — compaction is 30 ms

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


def _whole(choice: str) -> str:
    """Return a choice as it is stored: a pulled model by its name alone, a path from the root."""
    if any(model.name == choice.lower() for model in MODELS):
        return f"llama:{find_model(choice).name}"
    chosen = read_choice(choice)
    if chosen.kind == "llama" and chosen.place:
        chosen = chosen._replace(place=os.path.abspath(chosen.place))
    return chosen.spell()


def _in_use(home: Home) -> tuple[str, str]:
    """Return the choice that counts and which layer made it."""
    if choice := from_environment(os.environ).get(SETTING):
        return choice, "environment"
    choice = from_file(home.config).get(SETTING)
    if isinstance(choice, str) and choice:
        return choice, "config.toml"
    return default_choice(_models(home)), "default"


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
