"""Let older messages leave the window: CONTEXT.md, typed records and refs stand for them. History stays as it is."""

import argparse
import os

from daypack.cli.compactions import loss_line, read_by
from daypack.cli.options import add_place, natural, open_named
from daypack.cli.terminal import counted, json_text, safe, safe_line, say
from daypack.errors import BadInput
from daypack.files import atomic
from daypack.turn.compaction import Compacted


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument(
        "--model",
        metavar="CHOICE",
        help="who reads: none, openai:URL#NAME, llama:PATH or llama:NAME (default: the setting compaction_model)",
    )
    parser.add_argument("--keep", metavar="TOKENS", type=natural, help="tokens of the newest messages that stay")
    parser.add_argument(
        "--dry-run", action="store_true", help="record nothing: say what would leave, and what it becomes"
    )
    parser.add_argument(
        "--on-overflow", action="store_true", help="a provider refused the request as too long: make room now"
    )
    parser.add_argument(
        "--export", metavar="FILE", help="copy CONTEXT.md to this file as well, for instance in a workspace"
    )


def run(args: argparse.Namespace) -> int:
    """Compact and say what became of the window; that there is nothing to compact is no failure."""
    _check(args)
    with open_named(args) as session:
        if args.on_overflow:
            done = session.compact_on_overflow()
        else:
            done = session.compact(model=args.model, keep_tokens=args.keep, dry_run=args.dry_run)
        document = atomic.read(session.history.layout.derived("context_doc")) if args.export else None
    print(json_text(done) if args.json else _told(done))
    if args.export:
        _export(document, args.export)
    return 0


def _check(args: argparse.Namespace) -> None:
    problem = ""
    if args.on_overflow and (args.model is not None or args.keep is not None or args.dry_run):
        problem = "--on-overflow decides by itself, and at once"
    elif args.export and args.dry_run:
        problem = "a dry run has nothing to export"
    if problem:
        hint = "compact SESSION [--model CHOICE] [--keep TOKENS] [--dry-run or --export FILE], or SESSION --on-overflow"
        raise BadInput(problem, operation="compact", place="arguments", hint=hint)
    if args.export:
        _check_export(os.path.abspath(args.export))


def _check_export(path: str) -> None:
    """Refuse what could not be written, or would be lost, before anything is compacted."""
    from daypack.derived.template import problems  # noqa: PLC0415 — only here

    problem, hint = "", "name another file, or move it away"
    if not os.path.isdir(os.path.dirname(path)):
        problem, hint = "there is no such folder", "make it, or name another file"
    elif (former := atomic.read(path)) and problems(former.decode("utf-8", "replace")):
        problem = "the file says something else than a CONTEXT.md, and would be lost"
    if problem:
        raise BadInput(problem, operation="export", place=path, hint=hint)


def _told(done: Compacted) -> str:
    if not done.changed:
        return f"nothing was compacted: {safe_line(done.problem)}"
    dry = done.id is None
    count = counted(done.coverage.get("messages", 0), "message")
    left = f"{done.before_tokens:,} tokens {'would ' if dry else ''}have left it so far"
    lines = [
        f"{done.source} {'would leave' if dry else 'left'} the window: {count} {read_by(done.model)}",
        f"{left}, CONTEXT.md {'would have' if dry else 'has'} {done.after_tokens:,}",
        f"the window {'would begin' if dry else 'begins'} with message {done.kept_from}",
        "recorded nothing: a dry run tells what would be" if dry else f"recorded as {done.id}",
        "",
        safe(done.document).rstrip(),
    ]
    if done.losses:
        lines += ["", "not taken over, and in history as before:"]
        lines += [f"  {loss_line(one)}" for one in done.losses]
    if (more := done.coverage.get("losses", 0) - len(done.losses)) > 0:
        lines.append(f"  and {more:,} more")
    return "\n".join(lines)


def _export(document: bytes | None, path: str) -> None:
    if document is None:
        hint = "it is written by the first compaction"
        raise BadInput("there is no CONTEXT.md yet", operation="export", place=path, hint=hint)
    atomic.publish(os.path.abspath(path), document)
    say(f"CONTEXT.md is copied to {safe_line(path)}")
