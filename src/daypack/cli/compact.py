"""Compact older messages into CONTEXT.md, typed records and refs. The history itself is not changed."""

import argparse
import os

from daypack.cli.compactions import loss_line, read_by
from daypack.cli.options import add_place, open_named, tokens
from daypack.cli.suggested import with_place
from daypack.cli.terminal import counted, json_text, print_note, safe, safe_line, shell_word
from daypack.errors import BadInput
from daypack.files import atomic
from daypack.turn.compaction import Compacted


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "--model",
        metavar="CHOICE",
        help="model: none, openai:URL#NAME, llama:PATH or llama:NAME (default: the setting compaction_model)",
    )
    parser.add_argument(
        "--keep", metavar="TOKENS", type=tokens, help="tokens of the newest messages to keep uncompacted"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the result without recording it")
    parser.add_argument(
        "--on-overflow", action="store_true", help="make room now, because a provider refused the request as too long"
    )
    parser.add_argument(
        "--unread",
        action="store_true",
        help="read what a turn left unread, without a model; the window stays as it is",
    )
    parser.add_argument(
        "--export", metavar="FILE", help="also copy CONTEXT.md to this file, for instance into a workspace"
    )


def run(args: argparse.Namespace) -> int:
    """Compact and print the result; having nothing to compact is not a failure."""
    _check(args)
    with open_named(args) as session:
        if args.on_overflow:
            done = session.compact_on_overflow()
        elif args.unread:
            done = session.turns.compactions.compact_unread()
        else:
            done = session.compact(model=args.model, keep_tokens=args.keep, dry_run=args.dry_run)
        document = atomic.read(session.history.layout.derived("context_doc")) if args.export else None
    print(json_text(done) if args.json else _describe(done, args.session))
    if args.export:
        _export(document, args.export)
    return 0


def _check(args: argparse.Namespace) -> None:
    problem = ""
    fixed = [option for option in ("--on-overflow", "--unread") if getattr(args, option[2:].replace("-", "_"))]
    if len(fixed) > 1 or (fixed and (args.model is not None or args.keep is not None or args.dry_run)):
        problem = f"{fixed[0]} cannot be combined with {fixed[1] if len(fixed) > 1 else '--model, --keep or --dry-run'}"
    elif args.export and args.dry_run:
        problem = "--export cannot be combined with --dry-run"
    if problem:
        hint = "compact SESSION [--model CHOICE] [--keep TOKENS] [--dry-run or --export FILE], or SESSION --on-overflow"
        raise BadInput(problem, operation="compact", place="arguments", hint=hint)
    if args.export:
        _check_export(os.path.abspath(args.export))


def _check_export(path: str) -> None:
    """Check before compacting that the export can be written and overwrites nothing else."""
    from daypack.derived.template import problems  # noqa: PLC0415 — only here

    problem, hint = "", "name another file, or move it away"
    if not os.path.isdir(os.path.dirname(path)):
        problem, hint = "no such folder", "create it, or name another file"
    elif (existing := atomic.read(path)) and problems(existing.decode("utf-8", "replace")):
        problem = "the file is not a CONTEXT.md and would be overwritten"
    if problem:
        raise BadInput(problem, operation="export", place=path, hint=hint)


def _describe(done: Compacted, session: str) -> str:
    if not done.changed:
        return f"nothing to compact: {safe_line(done.problem)}"
    dry = done.id is None
    undo = with_place(f"`daypack undo {shell_word(session)}` reverts it")
    count = counted(done.coverage.get("messages", 0), "message")
    lines = [
        f"{'would compact' if dry else 'compacted'} {done.source}: {count} {read_by(done.model)}",
        f"{done.before_tokens:,} tokens compacted so far into a CONTEXT.md of {done.after_tokens:,}",
        f"the window {'would start' if dry else 'starts'} at message {done.kept_from}",
        "nothing recorded (dry run)" if dry else f"recorded as {done.id}; {undo}",
        "",
        safe(done.document).rstrip(),
    ]
    if done.losses:
        lines += ["", "not in CONTEXT.md (still in the history):"]
        lines += [f"  {loss_line(loss)}" for loss in done.losses]
    if (more := done.coverage.get("losses", 0) - len(done.losses)) > 0:
        lines.append(f"  and {more:,} more")
    return "\n".join(lines)


def _export(document: bytes | None, path: str) -> None:
    if document is None:
        hint = "the first compaction writes it"
        raise BadInput("no CONTEXT.md yet", operation="export", place=path, hint=hint)
    atomic.publish(os.path.abspath(path), document)
    print_note(f"copied CONTEXT.md to {safe_line(path)}")
