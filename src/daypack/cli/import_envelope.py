"""Verify the digests of an exported envelope, and add it to a session so that turns can use its items."""

import argparse
from collections import Counter

from daypack.cli.input import read_bytes
from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.parser import EXIT_USAGE
from daypack.cli.terminal import colour, counted, json_text, print_error, safe_line
from daypack.errors import BadInput
from daypack.turn.ledger import IMPORTED
from daypack.turn.survey.imported_envelopes import Checked, keep_envelope, read_envelope


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
    envelope, verification = checked.envelope, checked.verification
    print(f"context   {safe_line(envelope.context_id)}")
    print(f"scope     {safe_line(envelope.scope)}, {safe_line(envelope.lifecycle)}, {safe_line(envelope.created_at)}")
    if envelope.producer:
        producer = envelope.producer if isinstance(envelope.producer, str) else json_text(envelope.producer)
        print(f"made by   {safe_line(producer)}")
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in _kinds(checked).items())
    print(f"items     {len(checked.items):,}{f': {kinds}' if kinds else ''}")
    print(f"verified  {verification.verified:,} of {counted(verification.compared, 'digest')}")
    for warning in checked.warnings:
        print(f"{colour('warning', 'yellow')}   {safe_line(warning)}")


def _as_json(checked: Checked, event_id: str | None) -> dict[str, object]:
    envelope, verification = checked.envelope, checked.verification
    return {
        "context_id": envelope.context_id,
        "scope": envelope.scope,
        "lifecycle": envelope.lifecycle,
        "created_at": envelope.created_at,
        "producer": envelope.producer,
        "items": len(checked.items),
        "kinds": _kinds(checked),
        "digests": verification.compared,
        "verified": verification.verified,
        "differences": [difference._asdict() for difference in verification.differences],
        "warnings": checked.warnings,
        "event_id": event_id,
    }
