"""Verify the digests of an exported envelope, and add it to a session so that turns can use its items."""

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence

from daypack.cli.input import read_bytes
from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.parser import EXIT_USAGE
from daypack.cli.terminal import colour, counted, json_text, print_error, safe_line, shell_word
from daypack.errors import BadInput, SessionMissing
from daypack.turn.conformance.report import judge
from daypack.turn.conformance.subject import text
from daypack.turn.ledger import IMPORTED
from daypack.turn.survey.imported_envelopes import Checked, keep_envelope, read_envelope
from daypack.types.digest import digest_bytes
from daypack.types.history import Event

_IMPORT = "import envelope"
_STATED = ("context_id", "scope", "lifecycle", "created_at", "producer")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", metavar="FILE", help="the envelope document; - is standard input")
    parser.add_argument("--session", metavar="NAME", help="add it to this session (default: only verify it)")
    parser.add_argument(
        "--replace", action="store_true", help="use it in place of another document with its context_id in the session"
    )
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Verify, print and store; exit code 3 if something does not match its digest."""
    if args.replace and args.session is None:
        raise BadInput("--replace needs --session", operation=_IMPORT, place="arguments", hint="add --session NAME")
    if args.session is not None:
        _require_session(args)
    data = read_bytes(args.file, "read envelope")
    checked = read_envelope(data, args.file)
    broken = judge(checked.subject).failed
    if not args.json:
        _print(checked, broken)
    event_id, added = None, False
    if args.session is not None:
        with open_named(args) as session:
            former = _former(session.events(), checked.context_id)
            known = former is not None and former.data.get("digest") == digest_bytes(data)
            try:
                if former and not known and not args.replace and not checked.verification.differences:
                    raise _other(checked.context_id, former)
                facts = keep_envelope(session.history, data, checked)
            except BadInput as error:
                print_error(error)
                return EXIT_DAMAGE if checked.verification.differences else EXIT_USAGE
            added = not known
            event_id = former.id if former and known else session.append_event(IMPORTED, facts).id
    if args.json:
        print(json_text({**_as_json(checked, event_id), "broken_rules": broken, "added": added}))
    elif args.session is not None:
        name, used = safe_line(args.session), "turns can use the items their target may see"
        if not any(item.context_kind != "runtime_state" for item in checked.items):
            used = "it has no items that turns could use"
        print(
            f"added     to {name} as {event_id}; {used}" if added else f"known     {name} has it already, as {event_id}"
        )
    return EXIT_DAMAGE if checked.verification.differences else 0


def _former(events: Iterable[Event], context_id: str) -> Event | None:
    """Return the newest import of a document with that id."""
    imports = [event for event in events if event.type == IMPORTED and event.data.get("context_id") == context_id]
    return imports[-1] if imports else None


def _other(context_id: str, former: Event) -> BadInput:
    problem = f"the session has another document with this context_id, imported as {former.id}"
    hint = "add --replace to use this one in its place; nothing was stored"
    return BadInput(problem, operation=_IMPORT, place=context_id, hint=hint)


def _require_session(args: argparse.Namespace) -> None:
    """Fail before anything is printed if there is no such session."""
    try:
        open_named(args).close()
    except SessionMissing as error:
        error.hint = f"{error.hint}, or create it with `daypack session new {shell_word(args.session)}`"
        raise


def _kinds(checked: Checked) -> dict[str, int]:
    return dict(Counter(item.context_kind for item in checked.items).most_common())


def _print(checked: Checked, broken: Sequence[str]) -> None:
    document, verification = checked.document, checked.verification
    print(f"context   {safe_line(checked.context_id)}")
    stated = [text(document, field) or f"no {field}" for field in ("scope", "lifecycle", "created_at")]
    print(f"scope     {safe_line(', '.join(stated))}")
    if producer := document.get("producer"):
        print(f"made by   {safe_line(producer if isinstance(producer, str) else json_text(producer))}")
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in _kinds(checked).items())
    print(f"items     {len(checked.items):,}{f': {kinds}' if kinds else ''}")
    more = f"; {verification.unverifiable:,} cannot be verified" if verification.unverifiable else ""
    print(f"verified  {verification.verified:,} of {counted(verification.stated, 'digest')}{more}")
    if broken:
        shown = "`daypack conform FILE` shows where"
        print(f"{colour('warning', 'yellow')}   breaks {counted(len(broken), 'rule')}: {', '.join(broken)}; {shown}")
    for warning in checked.warnings:
        print(f"{colour('warning', 'yellow')}   {safe_line(warning)}")


def _as_json(checked: Checked, event_id: str | None) -> dict[str, object]:
    verification = checked.verification
    return {
        **{field: checked.document.get(field) for field in _STATED},
        "items": len(checked.items),
        "kinds": _kinds(checked),
        "digests": verification.stated,
        "verified": verification.verified,
        "unverifiable": verification.unverifiable,
        "differences": [
            {"rule": found.rule, "object": found.object, "path": found.path, "problem": found.problem}
            for found in verification.differences
        ],
        "warnings": checked.warnings,
        "event_id": event_id,
    }
