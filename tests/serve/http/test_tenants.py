"""Whose is whose: fifty users who reach for each other's memories through both doors."""

import json
import random
from base64 import urlsafe_b64decode, urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from campaigns import Campaign
from mcp import Client
from memory_server import run_daypack
from tenants_server import SECRET, USERS, Connection, TenantServer, attempts, in_client

from daypack.memory.tools import open_memory

ATTEMPTS = 100


def forged(token: str) -> str:
    """Return a token with one bit of its signature changed."""
    data = bytearray(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    data[-1] ^= 1
    return urlsafe_b64encode(data).decode().rstrip("=")


def test_no_user_reaches_the_memory_of_another_or_learns_that_it_exists(
    shared_server: TenantServer, campaign: Campaign
) -> None:
    uri = "daypack://memory/{}/context"
    missing = f"{random.getrandbits(128):032x}"
    nobody = f"{random.getrandbits(96):024x}{shared_server.owner.entry_id[24:]}"
    barrier = forged(shared_server.tenants[1].barrier)
    with closing(Connection(shared_server.server, shared_server.owner.token)) as first:
        absent = [
            [call(*one) for one in attempts(shared_server.owner.memory_id, missing, nobody, barrier)]
            for call in first.routes
        ]
        unread = first.read(uri.format(missing))

    def intrude(at: int) -> int:
        own, chance, tried = shared_server.tenants[at], random.Random(at), 0
        with closing(Connection(shared_server.server, own.token)) as line:
            while tried < ATTEMPTS:
                other = chance.choice([one for one in shared_server.tenants if one is not own])
                for n, one in enumerate(attempts(own.memory_id, other.memory_id, other.entry_id, other.barrier)):
                    door = (n + tried // 20) % 2
                    # Byte for byte what a memory that is not there gets.
                    assert line.routes[door](*one) == absent[door][n], one
                read = line.read(uri.format(other.memory_id))
                assert read[1].replace(other.memory_id.encode(), missing.encode()) == unread[1]
                tried += len(absent[0]) + 1
        return tried

    users = campaign.size("attacks", USERS * ATTEMPTS) // ATTEMPTS
    first_user = campaign.seed % USERS
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(intrude, [(first_user + at) % USERS for at in range(users)])) == {ATTEMPTS}
    assert not any(SECRET.encode() in body for answers in absent for _, body in answers)
    with open_memory(home=shared_server.server.home) as memories:
        for tenant in shared_server.tenants[1:]:
            own = memories.as_user(tenant.name)
            assert [one.memory_id for one in own.memories()] == [tenant.memory_id]
            assert [one.raw_entry for one in own.list_entries(tenant.memory_id).entries] == [tenant.secret]
            assert own.get_context(tenant.memory_id).version == 1


def test_each_sees_their_own_memories_in_every_list(shared_server: TenantServer) -> None:
    one, other = shared_server.tenants[1:3]
    with shared_server.server.client(one.token) as client:
        assert [memory["memory_id"] for memory in client.get("/api/memories").json()["memories"]] == [one.memory_id]
        foreign, absent = (
            client.get("/api/memories", params={"after": memory_id}) for memory_id in (other.memory_id, "0" * 32)
        )
        assert (foreign.status_code, foreign.json()) == (absent.status_code, absent.json())
        assert foreign.status_code == 404

    async def work(client: Client) -> str:
        read = await client.read_resource("daypack://memories")
        return (await client.list_resources()).model_dump_json() + read.model_dump_json()

    listed = in_client(shared_server, work, one.token)
    assert listed.count(one.memory_id) > 1
    assert other.memory_id not in listed


def test_wrong_revoked_and_expired_tokens_are_answered_alike(shared_server: TenantServer) -> None:
    home = shared_server.server.home
    made = json.loads(run_daypack(home, "token", "new", "late", "--days", "1", "--json").stdout)
    assert shared_server.server.call("get_user", made["secret"]).json()["user_id"] == "late"
    assert run_daypack(home, "token", "revoke", made["token"]["token_id"]).returncode == 0
    with open_memory(home=home) as memories:
        expired = memories.users.new_token("late", expires="2020-01-01").secret
    tokens = [
        made["secret"],
        expired,
        "dp_wrong",
        shared_server.owner.token[:-1],
        shared_server.owner.token.upper(),
        "x" * 10_000,
    ]
    refused = [shared_server.server.call("get_user", token) for token in tokens]
    assert {one.status_code for one in refused} == {401}
    assert len({one.content for one in refused}) == 1
    with shared_server.server.client() as client:
        assert client.get("/api/memories").status_code == 401
        assert client.get("/health").status_code == 200
        assert client.post("/mcp", json={}).headers["www-authenticate"].startswith("Bearer resource_metadata=")


@pytest.mark.requirement("G13")
def test_a_failed_write_is_reported_to_the_token_that_made_it(shared_server: TenantServer) -> None:
    server, owner = shared_server.server, shared_server.tenants[3]
    with open_memory(home=server.home) as memories:
        second = memories.users.new_token(owner.name).secret
        reader = memories.users.new_token(owner.name, scope="read").secret
    assert server.call("put_context", owner.token, memory_id=owner.memory_id, content="x" * 5001).status_code == 400
    for other in (reader, second):
        for arguments in ({}, {"memory_id": owner.memory_id}, {"token": owner.barrier}):
            found = server.call("await_consistency", other, **arguments).json()
            assert (found["status"], found["failed_writes"]) == ("consistent", [])
    (failed,) = server.call("await_consistency", owner.token).json()["failed_writes"]
    assert (failed["operation"], failed["memory_id"]) == ("put_context", owner.memory_id)
    assert server.call("await_consistency", owner.token).json()["status"] == "consistent"
