"""Search everything said and done in a session, also what left the window."""

import argparse

from daypack.cli.options import add_place, natural, open_named
from daypack.cli.terminal import colour, json_text, safe, safe_line, say


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("query", nargs="+", help="words, a path, a number or a name")
    parser.add_argument("-k", metavar="N", type=natural, default=5, help="how many results (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print the places that say most, best first; exit code 1 when nothing does."""
    with open_named(args) as session:
        hits = session.search_history(" ".join(args.query), args.k)
    if args.json:
        print(json_text(hits))
    else:
        for hit in hits:
            print(f"{colour(safe_line(hit.source), 'cyan')}  {hit.score:.2f}")
            print(f"  {safe(hit.text).replace(chr(10), chr(10) + '  ')}")
        if not hits:
            say("nothing was found")
    return 0 if hits else 1
