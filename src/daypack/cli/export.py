"""Export a turn, task, session, tool call, review or handoff as one envelope document.

With --html it writes the page of `daypack view` about a session as one file that needs no server and loads nothing.
"""

import argparse
import os

from daypack.cli.options import add_place, find_name, natural, open_named
from daypack.cli.terminal import counted, json_text, print_note, safe_line, shell_word
from daypack.cli.turn_inputs import add_items, check_standard_input, naming_items, read_given
from daypack.cli.turn_summary import event_named, print_document
from daypack.errors import BadInput
from daypack.files import atomic
from daypack.turn.evidence.export import SCOPES, encode, export
from daypack.turn.ledger import EXPORTED
from daypack.types.digest import digest_bytes
from daypack.types.kinds import TARGETS

_ALIASES = {"tool_call": "tool_invocation"}
_SCOPE = "turn"
_OF_DOCUMENTS = ("scope", "target", "event", "call", "items", "ids", "record")  # options that --html excludes


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "--scope",
        choices=(*SCOPES, *_ALIASES),
        help="what to export (default: turn); tool_call is an alias of tool_invocation",
    )
    parser.add_argument(
        "--target",
        choices=TARGETS,
        help="intended reader (default: reviewer for a review, peer_agent for a handoff, else evidence_export)",
    )
    parser.add_argument("--event", metavar="EV", help="event of a recorded turn, or latest (default: the next turn)")
    parser.add_argument("--call", metavar="ID", help="id of the tool call to export")
    add_items(parser)
    out = "write to a new file (default: standard output, for --html SESSION.html in this folder)"
    parser.add_argument("--out", metavar="FILE", help=out)
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.add_argument("--record", action="store_true", help="record the export as an event")
    page = "write the page about the session as one HTML file: its calls, what was left out, history, compactions"
    parser.add_argument("--html", action="store_true", help=page)
    calls = "for --html: the newest N calls (default: 200); 0: all calls, and all messages of a very long session"
    parser.add_argument("--calls", metavar="N", type=natural, help=calls)


def run(args: argparse.Namespace) -> int:
    """Export and write the document; with --record, record the export."""
    if args.html:
        return _write_page(args)
    scope: str = _ALIASES.get(args.scope) or args.scope or _SCOPE
    _check_arguments(args, scope)
    check_standard_input(args, "items", "ids")
    with open_named(args) as session:
        event = event_named(session, args.event) if args.event else None
        given = read_given(args)
        with naming_items(args.items):
            envelope = export(session.turns, scope, target=args.target, event=event, call=args.call, given=given)
        data = encode(envelope)
        facts = {
            "context_id": envelope.context_id,
            "scope": scope,
            "target": envelope.selections[0].target,
            "digest": digest_bytes(data),
            **({"ids": envelope.metadata["ids"]} if "ids" in envelope.metadata else {}),
        }
        if args.out:
            _write(args.out, data, force=args.force)
        else:
            print_document(data)
        recorded = session.append_event(EXPORTED, facts).id if args.record else None
    if args.out and args.json:
        print(json_text({**facts, "items": len(envelope.item_refs), "file": args.out, "event_id": recorded}))
    elif args.out:
        contents = f"{counted(len(envelope.item_refs), 'item')} for {facts['target']}"
        print(f"{safe_line(args.out)}: {contents}, {len(data):,} bytes, {facts['digest']}")
    return 0


def _check_arguments(args: argparse.Namespace, scope: str) -> None:
    problem, hint = "", "omit the option"
    if args.event and scope != "turn":
        problem = f"--event requires --scope turn, got {scope}"
    elif args.event and (args.items or args.ids):
        problem = "--items and --ids are for a new turn; --event names a recorded one"
    elif args.call and scope != "tool_invocation":
        problem, hint = f"--call requires --scope tool_invocation, got {scope}", "add --scope tool_invocation"
    elif args.calls is not None:
        problem, hint = "--calls requires --html", "add --html"
    elif args.force and not args.out:
        problem = "--force requires --out"
    elif args.out and not args.force and os.path.lexists(args.out):
        raise _exists(args.out)
    if problem:
        raise BadInput(problem, operation="export", place="arguments", hint=hint)


def _write_page(args: argparse.Namespace) -> int:
    """Write the page about a session as one file."""
    from daypack.cli.progress_bar import ProgressBar  # noqa: PLC0415 — only for --html
    from daypack.serve.page.export import CALLS, export_session  # noqa: PLC0415
    from daypack.serve.page.views.opened import OpenedHome  # noqa: PLC0415

    if given := [f"--{name}" for name in _OF_DOCUMENTS if getattr(args, name)]:
        hint = "--html always exports a session as a page: omit the other options"
        problem = f"--html cannot be combined with {', '.join(given)}"
        raise BadInput(problem, operation="export", place="arguments", hint=hint)
    name = find_name(args, args.session)
    path = args.out or f"{name}.html"
    _check_file(path, force=args.force)
    wanted = CALLS if args.calls is None else args.calls
    home = OpenedHome(args.home, args.uid, None)
    try:
        with ProgressBar(wanted) as bar:
            data, contents = export_session(
                home, args.agent, name, wanted, lambda done, total: bar.show(done, f"{done:,} of {total:,} calls")
            )
        with home.session(args.agent, name) as session:
            is_redacted = session.history.config.redaction != "off"
    finally:
        home.close()
    _write(path, data, force=args.force)
    if args.json:
        facts = {"file": path, "bytes": len(data), "redacted": is_redacted, **contents._asdict()}
        print(json_text(facts))
        return 0
    calls = f"{contents.calls:,} of {counted(contents.of_calls, 'call')}"
    messages = f"{contents.messages:,} of {counted(contents.of_messages, 'message')}"
    print(f"{safe_line(path)}: {calls}, {messages}, {counted(contents.texts, 'longer text')}, {len(data):,} bytes")
    secrets = (
        "without the secrets that were recognised" if is_redacted else "with all secrets, because redaction is off"
    )
    print_note(f"the file contains the conversation, {secrets}: check it before you pass it on")
    if contents.unreadable:
        print_note(
            f"{counted(contents.unreadable, 'answer')} could not be read; run `daypack doctor {shell_word(name)}`"
        )
    return 0


def _check_file(path: str, *, force: bool) -> None:
    """Raise BadInput if the page cannot be written to a path, before it is made."""
    folder = os.path.dirname(path)
    if path == "-":
        problem, hint, path = "--html cannot write to standard output", "name a file: --out FILE", "arguments"
    elif os.path.isdir(path):
        problem, hint = (
            "the path is a folder",
            f"name a file in it: --out {shell_word(os.path.join(path, 'page.html'))}",
        )
    elif folder and not os.path.isdir(folder):
        problem, path, hint = "no such folder", folder, f"create it: mkdir -p {shell_word(folder)}"
    elif not force and os.path.lexists(path):
        raise _exists(path)
    else:
        return
    raise BadInput(problem, operation="export", place=path, hint=hint)


def _exists(path: str) -> BadInput:
    return BadInput(
        "the file already exists", operation="export", place=path, hint="choose another name, or add --force"
    )


def _write(path: str, data: bytes, *, force: bool) -> None:
    absolute = os.path.abspath(path)
    if force:
        atomic.replace(absolute, data)
    elif not atomic.create(absolute, data):
        raise _exists(path)
