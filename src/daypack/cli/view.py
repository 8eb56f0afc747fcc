"""Open a page in the browser that shows what the model saw: every call, what was left out and why, compactions, memory.

It runs on this machine only, until Ctrl-C. The printed address contains a token that works once.
"""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from daypack.cli.log_options import add_log_options
from daypack.cli.options import add_place, find_named
from daypack.cli.server_options import address_of, check_packages, page_address, port
from daypack.cli.terminal import json_text, print_note

if TYPE_CHECKING:
    import socket

_PACKAGES = ("starlette", "uvicorn")
_HOST = "127.0.0.1"
# Without TERM no text browser is chosen, which would take over the terminal. The address is passed as standard input.
_OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.stdin.read()))"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("session", nargs="?", help="session to show first (default: the list of all)")
    add_place(parser, session=None)
    parser.add_argument("--port", type=port, default=0, help="port on this machine (default: a free one)")
    parser.add_argument("--user", default="local", help="user whose memories are shown (default: %(default)s)")
    parser.add_argument("--no-open", action="store_true", help="only print the address")
    add_log_options(parser)
    parser.set_defaults(log_level="warning")


def run(args: argparse.Namespace) -> int:
    """Serve the page until SIGINT or SIGTERM."""
    check_packages(_PACKAGES, "view")
    from daypack.serve.http.address import listen  # noqa: PLC0415 — after the check

    fragment = _fragment(args)
    with listen(_HOST, args.port) as listening:
        return _serve(args, listening, fragment)


def _fragment(args: argparse.Namespace) -> str:
    if not args.session:
        return ""
    from urllib.parse import quote  # noqa: PLC0415

    return "#/s/" + "/".join(quote(name, safe="") for name in find_named(args, args.session))


def _serve(args: argparse.Namespace, listening: "socket.socket", fragment: str) -> int:
    from daypack.memory.tools import open_memory  # noqa: PLC0415
    from daypack.serve.http import running  # noqa: PLC0415
    from daypack.serve.http.address import choose_policy  # noqa: PLC0415
    from daypack.serve.http.application import Place  # noqa: PLC0415
    from daypack.serve.http.limits import Shares  # noqa: PLC0415
    from daypack.serve.http.tenants import Tenants  # noqa: PLC0415
    from daypack.serve.observe.log import log  # noqa: PLC0415
    from daypack.serve.page.access import PageAccess  # noqa: PLC0415
    from daypack.serve.page.app import make_page, make_view_app  # noqa: PLC0415
    from daypack.serve.page.views.opened import OpenedHome  # noqa: PLC0415
    from daypack.serve.toolset import Toolset  # noqa: PLC0415

    log.configure(args.log_level, args.log_format)
    policy, shares = choose_policy(args.user, _HOST, (), require_token=False), Shares()
    with open_memory(home=args.home, uid=args.uid, user=args.user) as memories:
        home = OpenedHome(args.home, args.uid, memories)
        tenants = Tenants(memories, Toolset(), os.path.join(home.home.folder, "prompts"))
        access = PageAccess(args.user)
        place = Place(tenants, policy, shares, args.slow_ms)
        try:
            app = make_view_app(place, make_page(place, home, access))
            bound = listening.getsockname()[1]
            address = page_address(address_of(_HOST, bound), access, fragment)
            _print_address(args, address, bound)
            if not args.no_open:
                _open_browser(address)
            running.run(app, listening, shares)
        finally:
            home.close()
            tenants.close()
    return 0


def _print_address(args: argparse.Namespace, address: str, bound: int) -> None:
    if args.json:
        print(json_text({"url": address, "port": bound}), flush=True)
        return
    where = "open this address" if args.no_open else "the page opens in your browser; if it does not, open this address"
    print(f"{where} (it works once; stop with Ctrl-C):\n\n  {address}\n", flush=True)


def _open_browser(address: str) -> None:
    """Open the browser in a process of its own: some take long, wait until they are closed, or write to the terminal.

    The socket listens already, so the browser waits for the server, not the server for the browser.
    """
    import subprocess  # noqa: PLC0415 — with --no-open it is not needed
    from threading import Thread  # noqa: PLC0415

    environ = {name: value for name, value in os.environ.items() if name != "TERM"}

    def open_it() -> None:
        try:
            process = subprocess.Popen(  # noqa: S603 — our own interpreter
                [sys.executable, "-P", "-c", _OPEN],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environ,
                start_new_session=True,
            )
            process.communicate(address.encode())  # some end only with the browser
        except OSError:
            opened = False
        else:
            opened = process.returncode == 0
        if not opened:
            print_note("no browser could be opened: open the address above yourself")

    Thread(target=open_it, name="browser", daemon=True).start()
