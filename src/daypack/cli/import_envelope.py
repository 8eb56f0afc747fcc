"""Verify the digests of an exported envelope, and add it to a session so that turns can use its items."""

import argparse
from collections import Counter

from daypack.cli.input import read_bytes
from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.parser import EXIT_USAGE
from daypack.cli.terminal import colour, counted, json_text, print_error, safe_line
from daypack.errors import BadInput
from daypack.turn.conformance.subject import text
from daypack.turn.ledger import IMPORTED
from daypack.turn.survey.imported_envelopes import Checked, keep_envelope, read_envelope

_STATED = ("context_id", "scope", "lifecycle", "created_at", "producer")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", metavar="FILE", help="the envelope document; - is standard input")
    parser.add_argument("--session", metavar="NAME", help="add it to this session (default: only verify it)")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Verify, print and store; exit code 3 if something does not match its digest."""
    data = read_bytes(args.file, "read envelope")
    checked = read_envelope(data, args.file)
    if not args.json:
        _print(checked)
    event_id = None
    if args.session is not None:
        with open_named(args) as session:
            try:
                facts = keep_envelope(session.history, data, checked)
            except BadInput as error:
                print_error(error)
                return EXIT_DAMAGE if checked.verification.differences else EXIT_USAGE
            event_id = session.append_event(IMPORTED, facts).id
    if args.json:
        print(json_text(_as_json(checked, event_id)))
    elif args.session is not None:
        print(f"added     to {safe_line(args.session)} as {event_id}; turns can use the items their target may see")
    return EXIT_DAMAGE if checked.verification.differences else 0


def _kinds(checked: Checked) -> dict[str, int]:
    return dict(Counter(item.context_kind for item in checked.items).most_common())


def _print(checked: Checked) -> None:
    document, verification = checked.document, checked.verification
    print(f"context   {safe_line(checked.context_id)}")
    stated = [text(document, field) or f"no {field}" for field in ("scope", "lifecycle", "created_at")]
    print(f"scope     {safe_line(', '.join(stated))}")
    if producer := document.get("producer"):
        print(f"made by   {safe_line(producer if isinstance(producer, str) else json_text(producer))}")
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in _kinds(checked).items())
    print(f"items     {len(checked.items):,}{f': {kinds}' if kinds else ''}")
    print(f"verified  {verification.verified:,} of {counted(len(verification.comparisons), 'digest')}")
    for warning in checked.warnings:
        print(f"{colour('warning', 'yellow')}   {safe_line(warning)}")


def _as_json(checked: Checked, event_id: str | None) -> dict[str, object]:
    verification = checked.verification
    return {
        **{field: checked.document.get(field) for field in _STATED},
        "items": len(checked.items),
        "kinds": _kinds(checked),
        "digests": len(verification.comparisons),
        "verified": verification.verified,
        "differences": [
            {"rule": found.rule, "object": found.object, "path": found.path, "problem": found.problem}
            for found in verification.differences
        ],
        "warnings": checked.warnings,
        "event_id": event_id,
    }
