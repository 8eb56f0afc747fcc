"""Users have a profile, quotas and tokens; a secret is shown once and kept by nobody."""

from pathlib import Path

import pytest

from daypack.errors import AccessDenied, BadInput, BadName, NotFound, QuotaExceeded, UserMissing
from daypack.memory.store.port import Profile
from daypack.memory.tools import Memories
from daypack.types.memory import Usage, User


@pytest.mark.requirement("S2-T8", "G16")
def test_a_local_profile_is_made_on_first_use_with_quotas_and_usage(memories: Memories) -> None:
    assert memories.users.list() == ()
    user = memories.get_user()
    assert (user.user_id, user.name, user.email) == ("local", "local", "")
    assert (user.quotas.memories, user.quotas.entries, user.quotas.bytes) == (None, None, None)
    assert user.quotas.used == Usage()
    memory = memories.create_memory("Launch")
    memories.add_entry(memory.memory_id, "räw", "sum")
    used = memories.get_user().quotas.used
    assert (used.memories, used.entries) == (1, 1)
    assert used.bytes == memories.get_memory(memory.memory_id).stats.bytes
    assert memories.users.list() == (memories.get_user(),)


def test_a_profile_is_changed_in_part(memories: Memories) -> None:
    users = memories.users
    users.put("zoe", name="Zoë", email="z@example.org", quotas={"memories": 1, "entries": 2})
    users.put("zoe", quotas={"entries": None, "bytes": 10})
    zoe = users.find("zoe")
    assert (zoe.name, zoe.email) == ("Zoë", "z@example.org")
    assert (zoe.quotas.memories, zoe.quotas.entries, zoe.quotas.bytes) == (1, None, 10)


def test_a_quota_is_told_and_holds(memories: Memories) -> None:
    memories.users.put("local", quotas={"entries": 1})
    memory = memories.create_memory("Launch")
    memories.add_entry(memory.memory_id, "one", "one")
    with pytest.raises(QuotaExceeded, match="entries: 2 would exceed the quota of 1"):
        memories.add_entry(memory.memory_id, "two", "two")


@pytest.mark.parametrize("quotas", [{"entries": -1}, {"entries": True}, {"calls": 1}, {"bytes": 1 << 63}])
def test_a_quota_that_is_no_number_of_something_is_refused(memories: Memories, quotas: dict[str, int | None]) -> None:
    with pytest.raises(BadInput, match="quota"):
        memories.users.put("local", quotas=quotas)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a\0", "\ud800", " x"])
def test_a_user_must_be_a_name(memories: Memories, name: str) -> None:
    with pytest.raises(BadName):
        memories.as_user(name)
    with pytest.raises(BadInput):
        memories.users.put("local", name="a\nb")


def test_a_user_who_was_never_made_is_missing(memories: Memories) -> None:
    with pytest.raises(UserMissing):
        memories.users.find("nobody")
    with pytest.raises(UserMissing):
        memories.users.new_token("nobody")


def test_a_token_stands_for_its_user_and_scope_until_it_is_revoked(memories: Memories) -> None:
    users = memories.users
    users.get("zoe")
    read, write = users.new_token("zoe", "laptop", "read"), users.new_token("zoe", "server", "write")
    assert users.check_token(read.secret)[:2] == ("zoe", "read")
    assert users.check_token(write.secret)[:2] == ("zoe", "write")
    assert users.tokens("zoe") == tuple(
        sorted((read.token, write.token), key=lambda one: (one.created_at, one.token_id))
    )
    assert users.tokens("local") == ()
    users.revoke(read.token.token_id)
    with pytest.raises(AccessDenied):
        users.check_token(read.secret)
    assert users.check_token(write.secret).scope == "write"
    with pytest.raises(NotFound):
        users.revoke(read.token.token_id)


def test_unknown_revoked_and_expired_tokens_are_answered_alike(memories: Memories) -> None:
    users = memories.users
    users.get("zoe")
    revoked, expired = users.new_token("zoe"), users.new_token("zoe", expires="2020-01-01")
    users.revoke(revoked.token.token_id)
    later = users.new_token("zoe", expires="2999-01-01T00:00:00Z")
    assert users.check_token(later.secret)[:2] == ("zoe", "write")
    told: set[str] = set()
    for secret in (
        revoked.secret,
        expired.secret,
        "",
        "dp_",
        later.secret[:-1],
        later.secret + " ",
        "ü",
        "\ud800",
        "\0",
    ):
        with pytest.raises(AccessDenied) as caught:
            users.check_token(secret)
        told.add(str(caught.value))
    assert len(told) == 1


def test_a_secret_is_in_no_file(memories: Memories, home: str) -> None:
    memories.users.get("zoe")
    secret = memories.users.new_token("zoe").secret
    memories.close()
    files = [one for one in Path(home).rglob("*") if one.is_file()]
    assert files
    assert [one for one in files if secret.encode() in one.read_bytes()] == []


@pytest.mark.parametrize(("scope", "expires"), [("admin", None), ("", None), ("read", "soon"), ("read", "")])
def test_a_token_needs_a_scope_and_a_time_that_exist(memories: Memories, scope: str, expires: str | None) -> None:
    memories.users.get("zoe")
    with pytest.raises(BadInput):
        memories.users.new_token("zoe", "x", scope, expires)  # type: ignore[arg-type]


@pytest.mark.parametrize("quota", [1.5, "5", True, -1])
def test_a_quota_is_a_whole_number(memories: Memories, quota: int) -> None:
    with pytest.raises(BadInput, match="quota 'entries'"):
        memories.users.put("zoe", quotas={"entries": quota})


def test_two_who_change_different_quotas_do_not_undo_each_other(
    memories: Memories, monkeypatch: pytest.MonkeyPatch
) -> None:
    users, put = memories.users, memories.backend.store.accounts.put

    def put_late(user: str, profile: Profile) -> User:
        monkeypatch.undo()
        users.put("zoe", quotas={"bytes": 7})  # in between
        return put(user, profile)

    users.put("zoe")
    monkeypatch.setattr(memories.backend.store.accounts, "put", put_late)
    quotas = users.put("zoe", quotas={"entries": 5}).quotas
    assert (quotas.entries, quotas.bytes) == (5, 7)


@pytest.mark.parametrize("secret", [None, 5, b"dp_x"])
def test_what_is_no_text_is_no_token(memories: Memories, secret: str) -> None:
    with pytest.raises(AccessDenied):
        memories.users.check_token(secret)
    with pytest.raises(BadInput):
        memories.users.revoke(secret)
