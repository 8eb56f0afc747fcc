"""Options of the log of a server. It imports nothing else: `daypack mcp` must be ready before the first request."""

import argparse


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a server's log."""
    group = parser.add_argument_group("log, on standard error")
    level = "log lines of this level and above; debug logs every request (default: %(default)s)"
    group.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info", help=level)
    form = "form of log lines (default: text on a terminal, else json)"
    group.add_argument("--log-format", choices=("text", "json"), help=form)
    slow = "log calls that take longer than N milliseconds; 0 logs none (default: %(default)s)"
    group.add_argument("--slow-ms", type=_milliseconds, metavar="N", default=1000, help=slow)


def _milliseconds(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a number of 0 or more, got {text!r}")
