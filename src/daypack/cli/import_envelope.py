"""Read an envelope document made elsewhere, check its digests, and keep it in a session so that turns can use it."""

import argparse
import sys
from collections import Counter

from daypack.cli.main import EXIT_DAMAGE
from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import colour, counted, json_text, safe_line
from daypack.errors import BadInput
from daypack.turn.ledger import IMPORTED
from daypack.turn.survey.imported_envelopes import Checked, keep_envelope, read_envelope


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", metavar="FILE", help="the document (- is standard input)")
    parser.add_argument("--session", metavar="NAME", help="keep it in this session (default: only check it)")
    add_place(parser, session=None)


def run(args: argparse.Namespace) -> int:
    """Check, tell, keep; exit code 3 when words do not match their digest."""
    data = _read(args.file)
    checked = read_envelope(data, args.file)
    digests = sum(1 for item in checked.items if item.digest and isinstance(item.content, str))
    if not args.json:
        _print(checked, digests)
    kept = None
    if args.session is not None:
        with open_named(args) as session:
            kept = session.append_event(IMPORTED, keep_envelope(session.history, data, checked)).id
    if args.json:
        print(json_text(_as_json(checked, digests, kept)))
    elif args.session is not None:
        print(f"kept      in {safe_line(args.session)} as {kept}; its items go into turns as far as they may be seen")
    return 0 if checked.verified == digests else EXIT_DAMAGE


def _read(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read()
        with open(name, "rb") as file:
            return file.read()
    except OSError as error:
        problem = error.strerror or str(error)
        raise BadInput(problem, operation="read envelope", place=name, hint="name a readable file") from error


def _kinds(checked: Checked) -> dict[str, int]:
    return dict(Counter(item.context_kind for item in checked.items).most_common())


def _print(checked: Checked, digests: int) -> None:
    envelope = checked.envelope
    print(f"context   {safe_line(envelope.context_id)}")
    print(f"scope     {safe_line(envelope.scope)}, {safe_line(envelope.lifecycle)}, {safe_line(envelope.created_at)}")
    if envelope.producer:
        maker = envelope.producer if isinstance(envelope.producer, str) else json_text(envelope.producer)
        print(f"made by   {safe_line(maker)}")
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in _kinds(checked).items())
    print(f"items     {len(checked.items):,}{f': {kinds}' if kinds else ''}")
    print(f"verified  {checked.verified:,} of {counted(digests, 'digest')}")
    for warning in checked.warnings:
        print(f"{colour('warning', 'yellow')}   {safe_line(warning)}")


def _as_json(checked: Checked, digests: int, kept: str | None) -> dict[str, object]:
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
        "event_id": kept,
    }
