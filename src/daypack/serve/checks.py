"""What a server needs, examined without serving: `daypack serve --check`.

A check is a function that takes the Plan of a server and yields findings, at least one:

    def check_clock(plan: Plan) -> Iterator[Finding]:
        yield Finding("clock", "ok", "the clock is right")

A DaypackError that it raises becomes a problem with the error's place and hint, so a check can call what serving calls.
Its name in findings is that of the function. It changes nothing. Add it to CHECKS, in the order of what serving needs.
"""

import os
import resource
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from daypack.config import from_environment, from_file, settle
from daypack.errors import DaypackError
from daypack.history.layout import Home
from daypack.postgres.address import is_address
from daypack.postgres.refusals import LOOK
from daypack.serve.http.address import Policy, listen
from daypack.serve.reach.open_files import needed_files, room_for

if TYPE_CHECKING:
    from daypack.memory.tools import Memories
    from daypack.upkeep.database import DatabaseState

State = Literal["ok", "warning", "problem"]
_CLOCK_SECONDS = 2.0
PACKAGES = ("mcp", "starlette", "uvicorn")


class Finding(Struct, frozen=True, omit_defaults=True):
    """What a check has found. A warning does not prevent serving, a problem does."""

    check: str
    state: State
    text: str
    hint: str = ""


class Plan(NamedTuple):
    """The server that would be started. `open_memories` opens its memories, wherever they are stored."""

    home: Home
    open_memories: "Callable[[], Memories]"
    policy: Policy
    host: str
    port: int
    share_port: bool = False
    tls_files: tuple[str, str] | None = None  # certificate and key
    connections: int = 500


Check = Callable[[Plan], Iterator[Finding]]


def run_checks(plan: Plan, checks: Sequence[Check] = ()) -> Iterator[Finding]:
    """Yield the findings of all checks, or of those that are named; a database that cannot be used is named once."""
    has_failed = False
    for check in checks or CHECKS:
        if has_failed and check in _OF_STORE:
            continue
        name = check.__name__.removeprefix("check_").replace("_", " ")
        try:
            yield from check(plan)
        except DaypackError as error:
            has_failed = has_failed or (check is check_store and is_address(error.place))
            place = f"{error.place}: " if error.place else ""
            yield Finding(name, "problem", f"{place}{error.problem}", error.hint.removesuffix(LOOK))
        except OSError as error:
            hint = "check the rights of the user of the server"
            yield Finding(name, "problem", f"{error.filename or ''}: {error.strerror or error}".lstrip(": "), hint)


def check_packages(_: Plan) -> Iterator[Finding]:
    """Find the packages of the extra `serve`."""
    from importlib.util import find_spec  # noqa: PLC0415 — 4 ms

    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        yield Finding("packages", "problem", f"not installed: {', '.join(missing)}", "pip install 'daypack[serve]'")
    else:
        yield Finding("packages", "ok", f"{', '.join(PACKAGES)} are installed")


def check_settings(plan: Plan) -> Iterator[Finding]:
    """Read config.toml and the environment as serving does."""
    from daypack.memory.limits import read_limits  # noqa: PLC0415

    file = from_file(plan.home.config)
    settle([("environment", from_environment(os.environ)), (plan.home.config, file)])
    read_limits(file, plan.home.config)
    yield Finding("settings", "ok", f"{plan.home.config} can be read" if file else "defaults: there is no config.toml")


def check_home(plan: Plan) -> Iterator[Finding]:
    """Look whether the folder of the user can be written, or be created."""
    folder = existing = plan.home.folder
    while not os.path.isdir(existing) and existing != os.path.dirname(existing):
        existing = os.path.dirname(existing)
    if not os.access(existing, os.R_OK | os.W_OK | os.X_OK):
        hint = "run as its owner, or choose another home with --home or DAYPACK_HOME"
        yield Finding("home", "problem", f"{existing} cannot be read and written", hint)
    elif existing == folder:
        yield Finding("home", "ok", f"{folder} can be read and written")
    else:
        yield Finding("home", "ok", f"{folder} will be created")


def check_store(plan: Plan) -> Iterator[Finding]:
    """Read the store, and see whether a write could begin."""
    with plan.open_memories() as memories:
        if not _has_store(plan, memories):
            yield Finding("store", "ok", "a new store will be created")
            return
        if (server := memories.backend.server) is not None:
            server.database.require_no_upgrade("check store")
        memories.backend.store.check()
        if memories.default_memory:
            memories.find_memory(memories.default_memory)
    yield Finding("store", "ok", "memories can be read and written")


def check_database(plan: Plan) -> Iterator[Finding]:
    """Look at the database that has the memories, and at its replica: versions, rights, clocks and index jobs."""
    with plan.open_memories() as memories:
        server = memories.backend.server
        if server is None:
            yield Finding("database", "ok", "not used: memories are files of the home")
            return
        from daypack.upkeep.database import describe  # noqa: PLC0415 — few have a database

        state = describe(server.database, None if server.copy is None else server.copy.reads.replica)
    yield from _database_findings(state)


def _database_findings(state: "DatabaseState") -> Iterator[Finding]:
    versions = f"PostgreSQL {state.server}, pgvector {state.vector}, schema {state.schema}"
    if state.schema > state.known_schema:
        newer = f"{versions}, of which this version knows {state.known_schema}"
        yield Finding("database", "warning", f"{state.place}: {newer}", "install the later daypack here too")
    else:
        yield Finding("database", "ok", f"{state.place}: {versions}")
    yield from _account_findings(state)
    if abs(state.clock) > _CLOCK_SECONDS:
        text = f"the clock of the database is {abs(state.clock):,.1f} s {'ahead' if state.clock > 0 else 'late'}"
        yield Finding("database clock", "warning", text, "synchronise both with NTP: times of entries are from here")
    else:
        yield Finding("database clock", "ok", f"within {_CLOCK_SECONDS:g} s of this one")
    if state.dead_jobs:
        text = f"{state.dead_jobs:,} given up: these memories are not indexed"
        yield Finding("index jobs", "warning", text, "`daypack doctor` lists them with their problems")
    else:
        yield Finding("index jobs", "ok", f"{state.due_jobs:,} due, none given up")
    replica = state.replica
    if replica is None:
        return
    if replica.is_wrong:
        hint = "correct or remove [store] replica_url; until then, reads go to the primary and barriers are not reached"
        yield Finding("replica", "problem", f"{replica.place}: {replica.problem}", hint)
    elif replica.lag is None:
        hint = "check [store] replica_url; until it answers, reads go to the primary"
        yield Finding("replica", "warning", f"{replica.place}: {replica.problem}", hint)
    else:
        yield Finding("replica", "ok", f"{replica.place}: {replica.lag:,} bytes of the log are not replayed yet")


def _account_findings(state: "DatabaseState") -> Iterator[Finding]:
    for found in state.role_problems:
        yield Finding("database role", "problem", f"{found.what}: {found.problem}", found.remedy)
    if not state.role_problems:
        yield Finding("database role", "ok", f"{state.account} becomes {state.role}, which is unprivileged")
    if state.is_superuser:
        from daypack.postgres.migrations import ROLES  # noqa: PLC0415 — few have a database

        account = f"CREATE ROLE daypack LOGIN PASSWORD '…'; GRANT {', '.join(ROLES)} TO daypack;"
        hint = f"give daypack an account of its own, and name it in the address: {account}"
        yield Finding("database account", "warning", f"{state.account} is a superuser", hint)
    if state.lax_account:
        from daypack.upkeep.database import LAX, lax_remedy  # noqa: PLC0415 — few have a database

        yield Finding("database commits", "warning", LAX, lax_remedy(state.lax_account))
    else:
        yield Finding("database commits", "ok", "they wait for the disk")


def check_audit_log(plan: Plan) -> Iterator[Finding]:
    """See whether a line could be written."""
    with plan.open_memories() as memories:
        if memories.backend.audit is not None and _has_store(plan, memories):
            memories.backend.audit.check()
    yield Finding("audit log", "ok", "it can be written")


def check_tokens(plan: Plan) -> Iterator[Finding]:
    """Count the tokens, if callers need them."""
    if not plan.policy.token_required:
        yield Finding("tokens", "ok", "callers on this machine need none")
        return
    from daypack.memory.times import now_ms, parse_time  # noqa: PLC0415

    with plan.open_memories() as memories:
        tokens = memories.users.tokens() if _has_store(plan, memories) else ()
    valid = [token for token in tokens if token.expires_at is None or (parse_time(token.expires_at) or 0) > now_ms()]
    hint = "create one with `daypack token new USER`"
    if valid:
        yield Finding("tokens", "ok", f"{len(valid):,} valid")
    elif tokens:
        yield Finding("tokens", "warning", "all tokens have expired", hint)
    else:
        yield Finding("tokens", "problem", "callers need a token, and none exists", hint)


def check_address(plan: Plan) -> Iterator[Finding]:
    """Listen for a moment."""
    with listen(plan.host, plan.port, shared=plan.share_port) as listening:
        host, port = listening.getsockname()[:2]
    yield Finding("address", "ok", f"{host} port {port if plan.port else 'of its own'} is free")


def check_tls(plan: Plan) -> Iterator[Finding]:
    """Open the certificate and its key."""
    if plan.tls_files is None:
        yield Finding("tls", "ok", "not used")
        return
    from daypack.serve.reach.tls import open_tls  # noqa: PLC0415 — ssl takes 20 ms

    tls = open_tls(*plan.tls_files)
    for place, problem, hint in tls.warnings:
        yield Finding("tls", "warning", f"{place}: {problem}", hint)
    if not tls.warnings:
        yield Finding("tls", "ok", f"{plan.tls_files[0]} and its key can be used")


def check_open_files(plan: Plan) -> Iterator[Finding]:
    """Compare the limit of open files with the connections that were asked for."""
    hard, needed = resource.getrlimit(resource.RLIMIT_NOFILE)[1], needed_files(plan.connections)
    if hard == resource.RLIM_INFINITY or hard >= needed:
        yield Finding("open files", "ok", f"enough for {plan.connections:,} connections")
        return
    text = f"at most {hard:,}: room for {room_for(hard):,} of {plan.connections:,} connections"
    yield Finding("open files", "warning", text, f"allow {needed:,} (ulimit -Hn), or use fewer --connections")


def check_embedding_model(plan: Plan) -> Iterator[Finding]:
    """Open the model that memories are searched with."""
    from daypack.llm.embedders import default_embedding_model, open_embedder  # noqa: PLC0415

    config = settle([("environment", from_environment(os.environ)), (plan.home.config, from_file(plan.home.config))])
    choice = config.embedding_model or default_embedding_model(plan.home.models)
    embedder = open_embedder(choice, models=plan.home.models)
    if embedder is None:
        yield Finding("embedding model", "ok", "none: searches compare words only")
        return
    try:
        embedder.encode(["a text"])
    finally:
        embedder.close()
    yield Finding("embedding model", "ok", f"{choice} answers")


def _has_store(plan: Plan, memories: "Memories") -> bool:
    """Return False if the store is a file that the first start will create."""
    from daypack.memory.store.sqlite import SqliteStore  # noqa: PLC0415 — sqlite3 takes 10 ms

    return not isinstance(memories.backend.store, SqliteStore) or os.path.exists(plan.home.store)


_OF_STORE = (check_database, check_audit_log, check_tokens)
CHECKS: tuple[Check, ...] = (
    check_packages,
    check_settings,
    check_home,
    check_store,
    check_database,
    check_audit_log,
    check_tokens,
    check_address,
    check_tls,
    check_open_files,
    check_embedding_model,
)
