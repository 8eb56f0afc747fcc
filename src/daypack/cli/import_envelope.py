"""Verify the digests of an exported envelope, and add it to a session so that turns can use its items."""

import argparse
from collections import Counter

from daypack.cli.input import read_bytes
from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import colour, counted, json_text, safe_line
from daypack.turn.ledger import IMPORTED
from daypack.turn.survey.imported_envelopes import Checked, keep_envelope, read_envelope


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", metavar="FILE", help="the envelope document; - is standard input")
    parser.add_argument("--session", metavar="NAME", help="add it to this session (default: only verify it)")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Verify, print and store; exit code 3 if a content does not match its digest."""
    data = read_bytes(args.file, "read envelope")
    checked = read_envelope(data, args.file)
    digests = sum(1 for item in checked.items if item.digest and isinstance(item.content, str))
    if not args.json:
        _print(checked, digests)
    event_id = None
    if args.session is not None:
        with open_named(args) as session:
            event_id = session.append_event(IMPORTED, keep_envelope(session.history, data, checked)).id
    if args.json:
        print(json_text(_as_json(checked, digests, event_id)))
    elif args.session is not None:
        print(f"added     to {safe_line(args.session)} as {event_id}; turns can use the items their target may see")
    return 0 if checked.verified == digests else EXIT_DAMAGE


def _kinds(checked: Checked) -> dict[str, int]:
    return dict(Counter(item.context_kind for item in checked.items).most_common())


def _print(checked: Checked, digests: int) -> None:
    envelope = checked.envelope
    print(f"context   {safe_line(envelope.context_id)}")
    print(f"scope     {safe_line(envelope.scope)}, {safe_line(envelope.lifecycle)}, {safe_line(envelope.created_at)}")
    if envelope.producer:
        producer = envelope.producer if isinstance(envelope.producer, str) else json_text(envelope.producer)
        print(f"made by   {safe_line(producer)}")
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in _kinds(checked).items())
    print(f"items     {len(checked.items):,}{f': {kinds}' if kinds else ''}")
    print(f"verified  {checked.verified:,} of {counted(digests, 'digest')}")
    for warning in checked.warnings:
        print(f"{colour('warning', 'yellow')}   {safe_line(warning)}")


def _as_json(checked: Checked, digests: int, event_id: str | None) -> dict[str, object]:
    envelope = checked.envelope
    return {
        "context_id": envelope.context_id,
        "scope": envelope.scope,
        "lifecycle": envelope.lifecycle,
        "created_at": envelope.created_at,
        "producer": envelope.producer,
        "items": len(checked.items),
        "kinds": _kinds(checked),
        "digests": digests,
        "verified": checked.verified,
        "warnings": checked.warnings,
        "event_id": event_id,
    }
