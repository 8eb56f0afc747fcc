"""Servers that run while a module is tested."""

from collections.abc import Iterator

import pytest
from memory_server import Server, start_server
from tenants_server import SECRET, USERS, Tenant, TenantServer

import daypack
from daypack.memory.tools import open_memory


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One that serves the memories of ada, without a token."""
    with start_server(str(tmp_path_factory.mktemp("server") / "home"), "--user", "ada") as server:
        yield server


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantServer]:
    home = str(tmp_path_factory.mktemp("http") / "home")
    tenants: list[Tenant] = []
    with open_memory(home=home) as memories:
        for at in range(USERS):
            name = f"user{at}"
            memories.users.get(name)
            own = memories.as_user(name)
            memory_id = own.create_memory(f"of {name}").memory_id
            secret = f"{SECRET}{name}"
            added = own.add_entry(memory_id, secret, "a secret", client_key="k")
            token = memories.users.new_token(name).secret
            tenants.append(Tenant(name, token, memory_id, added.entry_id, added.token, secret))
        reader = memories.users.new_token("user0", scope="read").secret
    with daypack.open_session("work", home=home, durability="os") as session:
        session.append("user", "The crane is number 7.")
    with start_server(home, "--require-token", "--user", "user0", "--session", "work") as server:
        yield TenantServer(server, tenants, reader)
