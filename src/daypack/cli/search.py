"""Search everything said and done in a session, including compacted messages."""

import argparse

from daypack.cli.options import add_place, natural, open_named
from daypack.cli.terminal import Progress, colour, json_text, print_note, safe, safe_line


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("query", nargs="+", help="words, path, number or name to search for")
    parser.add_argument("-k", metavar="N", type=natural, default=5, help="number of results (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print the best matches first; exit code 1 if there are none."""
    with open_named(args) as session:
        progress = Progress("messages to index")
        session.turns.inputs.history_search.index.on_progress = progress.show
        hits = session.search_history(" ".join(args.query), args.k)
    progress.clear()
    if args.json:
        print(json_text(hits))
    else:
        for hit in hits:
            print(f"{colour(safe_line(hit.source), 'cyan')}  {hit.score:.2f}")
            print(f"  {safe(hit.text).replace(chr(10), chr(10) + '  ')}")
        if not hits:
            print_note("no matches")
    return 0 if hits else 1
