"""Serve the memory tools over HTTP: MCP at /mcp, a JSON API at /api, described at /openapi.json, /health and /metrics.

Clients on this machine need no token. With --host or --allow-host every user needs one: `daypack token new USER`.
The page of `daypack view` is at /; it always needs a token, for instance the one in the printed address.
"""

import argparse
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from daypack.cli.log_options import add_log_options
from daypack.cli.mcp import MEMORY_HELP
from daypack.cli.options import add_place, open_named
from daypack.cli.server_options import (
    ChosenReach,
    add_reach_options,
    address_of,
    check_packages,
    choose_reach,
    page_address,
    port,
    read_tls,
)
from daypack.cli.terminal import json_text, safe_line
from daypack.errors import AccessDenied

if TYPE_CHECKING:
    from daypack.memory.tools import Memories
    from daypack.serve.http.address import Policy
    from daypack.serve.page.access import PageAccess
    from daypack.serve.reach.tls import Tls
    from daypack.serve.sample import Sample
    from daypack.serve.toolset import Toolset

_PACKAGES = ("mcp", "starlette", "uvicorn")
PORT = 8420
DATABASE_SECONDS = 5.0  # how long a call waits for a database that does not answer


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser, session=None)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=port, default=PORT, help="port; 0 picks a free one (default: %(default)s)")
    parser.add_argument("--user", default="local", help="user of requests without a token (default: %(default)s)")
    parser.add_argument("--memory", metavar="ID", help=f"of --user only: {MEMORY_HELP}")
    session = "also serve recall and search_history of this session, to --user only"
    parser.add_argument("--session", metavar="NAME", help=session)
    parser.add_argument("--require-token", action="store_true", help="require a token on this machine too")
    check = "examine what serving needs, print the findings and exit: 1 if there is a problem"
    parser.add_argument("--check", action="store_true", help=check)
    parser.add_argument("--sample", action="store_true", help="create a sample memory and session, once")
    add_reach_options(parser)
    _add_limits(parser)
    add_log_options(parser)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the limits of a server; their defaults are those of ServerLimits."""
    group = parser.add_argument_group("limits")
    each = "; 0: no limit (default: %(default)s)"
    rate = f"requests per minute of a user{each}"
    group.add_argument("--rate", metavar="N", type=_count, default=60_000, help=rate)
    bad = f"requests per minute of an address with a token that is not valid{each}"
    group.add_argument("--bad-tokens", metavar="N", type=_count, default=60, help=bad)
    most = "connections at once, at least 20; one caller has at most half (default: %(default)s)"
    group.add_argument("--connections", metavar="N", type=_connections, default=500, help=most)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    if args.check:
        from daypack.cli import serve_check  # noqa: PLC0415 — only with the option

        return serve_check.run(args)
    check_packages(_PACKAGES, "serve")
    from daypack.memory.tools import open_memory  # noqa: PLC0415 — after the check, and not for --help

    tls, reach = read_tls(args), choose_reach(args)
    with open_memory(home=args.home, uid=args.uid, user=args.user, memory=args.memory) as memories:
        if (server := memories.backend.server) is not None:
            server.database.patience = DATABASE_SECONDS
            server.database.prepare("serve")  # an upgrade of the schema may take longer than a check waits
            memories.backend.check()  # else it would listen and refuse every call
        if memories.default_memory:
            memories.default_memory = memories.find_memory(memories.default_memory)
        if reach.policy.token_required and not memories.users.tokens():
            hint = "create one with `daypack token new USER`"
            reason = "other machines could reach this server" if reach.others else "--require-token was given"
            raise AccessDenied(f"{reason}, and no token exists", operation="serve", hint=hint)
        return _serve(args, memories, reach, tls)


def _serve(args: argparse.Namespace, memories: "Memories", reach: ChosenReach, tls: "Tls | None") -> int:
    from daypack.history.home import find_home  # noqa: PLC0415
    from daypack.serve.http.address import listen  # noqa: PLC0415
    from daypack.serve.toolset import Toolset  # noqa: PLC0415

    without = () if memories.backend.limits.create_memory else ("create_memory",)
    toolset, owner_tools = Toolset(without=without), _owner_tools(args, without, memories.default_memory)
    listening = listen(args.host, args.port, shared=args.share_port)
    sample = _make_sample(args, memories) if args.sample else None
    from daypack.serve.http import running  # noqa: PLC0415
    from daypack.serve.http.application import Place  # noqa: PLC0415
    from daypack.serve.http.limits import ServerLimits, Shares  # noqa: PLC0415
    from daypack.serve.http.server import make_app  # noqa: PLC0415 — takes about a second
    from daypack.serve.http.tenants import Tenants  # noqa: PLC0415
    from daypack.serve.observe.log import log  # noqa: PLC0415
    from daypack.serve.page.access import PageAccess  # noqa: PLC0415
    from daypack.serve.page.app import make_page  # noqa: PLC0415
    from daypack.serve.page.views.opened import OpenedHome  # noqa: PLC0415
    from daypack.serve.reach.open_files import allow_connections  # noqa: PLC0415
    from daypack.serve.shared.sharing import page_claim, page_key, share  # noqa: PLC0415

    prompts = os.path.join(find_home(args.home, args.uid).folder, "prompts")
    tenants = Tenants(memories, toolset, prompts, owner_tools)
    home = OpenedHome(args.home, args.uid, memories)
    access = PageAccess(tenants.owner, page_key(memories.backend), page_claim(memories.backend))
    log.configure(args.log_level, args.log_format)
    try:
        connections = allow_connections(args.connections)
        shares = Shares(ServerLimits(connections=connections, rate=args.rate, bad_tokens=args.bad_tokens))
        place = Place(tenants, reach.policy, shares, args.slow_ms)
        app = make_app(place, make_page(place, home, access))
        for file, problem, hint in tls.warnings if tls else ():
            log.line("warning", "server.tls", place=file, problem=problem, hint=hint)
        _print_address(args, listening.getsockname(), _Started(reach.policy, access, sample, memories.backend.place))
        with _indexing(memories), share(memories.backend, shares, app.observer.metrics):
            running.run(app, listening, shares, running.Reach(tls and tls.context, reach.proxies, args.drain_seconds))
    finally:
        home.close()
        tenants.close()
    return 0


def _indexing(memories: "Memories") -> AbstractContextManager[object]:
    """Work on the index jobs of a database meanwhile; the index of files is updated by searches."""
    if memories.backend.server is None:
        return nullcontext()
    from daypack.memory.indexer import Indexer  # noqa: PLC0415 — only with a database
    from daypack.serve.observe.observer import report_error  # noqa: PLC0415

    return Indexer(memories.backend, report_error).running()


def _make_sample(args: argparse.Namespace, memories: "Memories") -> "Sample":
    from daypack.serve.sample import make_sample  # noqa: PLC0415 — only with --sample

    return make_sample(memories, home=args.home, uid=args.uid, agent=args.agent)


class _Started(NamedTuple):
    """What the printed text is about."""

    policy: "Policy"
    access: "PageAccess"
    sample: "Sample | None"
    store: str  # the address of a database; empty: files of the home


def _owner_tools(args: argparse.Namespace, without: tuple[str, ...], default_memory: str) -> "Toolset | None":
    """Return the tools of --user if they differ from those of every user."""
    if not args.session and not default_memory:
        return None
    from daypack.serve.toolset import Toolset  # noqa: PLC0415

    session = open_named(args) if args.session else None
    return Toolset(without=without, open_session=(lambda: session) if session else None, default_memory=default_memory)


def _print_address(args: argparse.Namespace, bound: tuple[str, int], started: _Started) -> None:
    """Print the address of the server and what to paste into each client."""
    from shlex import quote  # noqa: PLC0415

    from daypack.llm.addresses import is_loopback  # noqa: PLC0415
    from daypack.serve.install.client_config import list_snippets  # noqa: PLC0415

    policy, access, sample, store = started
    host, port = bound[:2]
    is_local = is_loopback(host)
    if policy.any_address:
        host = args.allow_host[0] if args.allow_host else "127.0.0.1"
    address = address_of(host, port, "https" if args.tls_cert else "http")
    # Beyond this machine the address may pass through logs of others, and everyone there has a token anyway.
    page = page_address(address, access) if is_local else f"{address}/"
    if args.json:
        facts = {"url": address, "page": page, "mcp": f"{address}/mcp", "port": port}
        facts |= {"token_required": policy.token_required}
        facts |= {"store": store} if store else {}
        facts |= {"public_url": args.public_url} if args.public_url else {}
        print(json_text(facts | ({"sample": sample._asdict()} if sample else {})), flush=True)
        return
    users = "all users with a token" if policy.token_required else f"user {safe_line(args.user)}"
    users += f" in {safe_line(store)}" if store else ""
    lines = [f"daypack serves the memories of {users} at {address} (stop with Ctrl-C)", ""]
    once = "; this address works once" if is_local else "; it asks for a token"
    lines += [f"  {page}", f"  {'':>{len(address)}}{'':<14} the page: sessions, calls and memories in a browser{once}"]
    lines += [f"  {address}{path:<14} {purpose}" for path, purpose in _ENDPOINTS.items()]
    for snippet in list_snippets(f"{args.public_url or address}/mcp", token_required=policy.token_required):
        lines += ["", f"{snippet.client}: {snippet.instruction}", ""]
        lines += [f"  {line}" for line in snippet.text.splitlines()]
    if policy.token_required:
        lines += ["", "Set DAYPACK_TOKEN to the token of the user; create one with `daypack token new USER`."]
    if sample:
        home = f" --home {quote(args.home)}" if args.home else ""
        program = quote(_program())
        lines += [
            "",
            "Try the sample:",
            "",
            f"  {program} memory search {sample.memory_id[:8]} 'who has the key of the hall'{home}",
            f"  {program} memory search {sample.memory_id[:8]} 爵士乐队{home}",
            f"  {program} memory show {sample.memory_id[:8]}{home}",
            f"  {program} log {sample.session}{home}",
            f"  {program} search {sample.session} font{home}",
        ]
    print("\n".join(lines), flush=True)


def _program() -> str:
    """Return the command that runs this program: its name if it is on PATH, else its path."""
    from shutil import which  # noqa: PLC0415

    here = os.path.abspath(sys.argv[0])
    found = which("daypack")
    if os.path.basename(here) != "daypack" or (found and os.path.samefile(found, here)):
        return "daypack"
    return os.path.relpath(here)


_ENDPOINTS = {
    "/mcp": "MCP over streamable HTTP",
    "/api/…": "the same tools as a JSON API",
    "/openapi.json": "the OpenAPI document",
    "/health/ready": "whether it can serve; /health/live: whether it runs",
    "/metrics": "metrics for Prometheus",
}


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a number from 0 to 999999999, got {text!r}")


def _connections(text: str) -> int:
    if text.isascii() and text.isdigit() and 20 <= int(text[:9]) <= 100_000:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a number from 20 to 100000, got {text!r}")
