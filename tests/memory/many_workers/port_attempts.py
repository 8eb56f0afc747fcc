"""Every method of the store, called by one user with ids, keys and names of another."""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from memory.many_workers.fifty_users import Person
from memory.store.stores import new_entry

from daypack.errors import DaypackError
from daypack.memory.store.port import Accounts, EntryRange, NewDocument, NewMemory, Store
from daypack.types.memory import Where

Call = Callable[[Store], object]
# Not calls of a user: they concern the whole store, or no memory.
_OF_OPERATORS = {"store_id", "accounts", "rewrite", "check", "close"}
_ACCOUNTS_OF_OPERATORS = {"list", "damaged", "put_token", "drop_token"}


class Aim(NamedTuple):
    """What a call reaches for: of another user, or of nobody."""

    memory_id: str
    entry_id: str
    document_id: str
    key: str
    session: str
    bait: str

    @classmethod
    def at(cls, person: Person) -> "Aim":
        return cls(
            person.memory_id, person.entry_id, person.document_id, person.key, person.session, person.bait
        )  # fmt: skip

    @classmethod
    def at_nobody(cls, chance: random.Random, like: Person) -> "Aim":
        """Return ids of the same form that nobody has."""
        memory_id, stem, other_stem = (f"{chance.getrandbits(bits):0{bits // 4}x}" for bits in (128, 96, 96))
        ids = stem + like.entry_id[24:], other_stem + like.document_id[24:]
        return cls(memory_id, *ids, "key of nobody", "session of nobody", "banobody")

    def hide(self, text: str) -> str:
        """Return an answer without what the caller sent."""
        for name, value in self._asdict().items():
            text = text.replace(value, f"<{name}>").replace(value.upper(), f"<{name}>")
        return text


def port_attempts(me: Person, aim: Aim) -> list[tuple[str, Call]]:
    """Return calls of every method that takes a user; what is not one's own is `aim`."""
    user, own, other = me.name, me.scratch_id, aim.memory_id
    where = Where(tags=(aim.bait,), session=aim.session)
    entry = new_entry("mine now", client_key=aim.key)
    return [
        ("memory", lambda store: store.memory(user, other)),
        ("memories", lambda store: [memory.memory_id == other for memory in store.memories(user, deleted=None)][:1]),
        ("damaged", lambda store: store.damaged(user)),
        ("delete", lambda store: store.delete(user, other)),
        ("restore", lambda store: store.restore(user, other)),
        ("erase", lambda store: store.erase(user, other)),
        ("add", lambda store: store.add(user, other, [new_entry("mine now")])),
        ("add", lambda store: store.add(user, other, [entry])),
        ("add", lambda store: store.add(user, other, [new_entry("mine now", entry_id=aim.entry_id, created_at=1)])),
        ("find_key", lambda store: store.find_key(user, other, aim.key)),
        ("find_key", lambda store: store.find_key(user, own, aim.key)),
        ("seq_of", lambda store: store.seq_of(user, other, aim.entry_id)),
        ("seq_of", lambda store: store.seq_of(user, own, aim.entry_id)),
        ("page", lambda store: store.page(user, other, EntryRange(limit=50))),
        ("page", lambda store: store.page(user, other, EntryRange(limit=50, after_seq=0))),
        ("page", lambda store: store.page(user, other, EntryRange(limit=50, before_time=1 << 50))),
        ("after", lambda store: store.after(user, other, 0, 1_000)),
        ("pick", lambda store: store.pick(user, other, range(1, 50))),
        ("find", lambda store: store.find(user, other, where)),
        ("find", lambda store: store.find(user, own, where)),
        ("find", lambda store: store.find(user, own, Where(session=aim.session))),
        ("find", lambda store: store.find(user, own, Where(tags=(aim.bait, "common")))),
        ("erase_entry", lambda store: store.erase_entry(user, other, aim.entry_id)),
        ("erase_entry", lambda store: store.erase_entry(user, own, aim.entry_id)),
        ("put_document", lambda store: store.put_document(user, other, "mine now")),
        ("document", lambda store: store.document(user, other)),
        ("document", lambda store: store.document(user, other, 1)),
        ("documents", lambda store: store.documents(user, other, 0, 100)),
        ("newest", lambda store: store.newest(user, other)),
        ("accounts.find_token", lambda store: store.accounts.find_token(bytes.fromhex(other * 2))),
        ("accounts.tokens", lambda store: store.accounts.tokens(user)),
    ]


def load_attempt(me: Person, aim: Aim) -> Call:
    """Return a call that loads a memory with the ids of another: it becomes a memory of its own."""
    new = NewMemory(title="mine now", memory_id=aim.memory_id)
    document = NewDocument("mine now", document_id=aim.document_id, created_at=1)
    entry = new_entry("mine now", entry_id=aim.entry_id, created_at=1, client_key=aim.key)
    return lambda store: store.load(me.name, new, (document,), (entry,))


def methods() -> set[str]:
    """Return the names of all methods that have to be attempted."""
    of_accounts = {name for name in vars(Accounts) if not name.startswith("_")} - _ACCOUNTS_OF_OPERATORS
    of_store = {name for name in vars(Store) if not name.startswith("_")} - _OF_OPERATORS
    # `find` and `put` of accounts take nothing but the user.
    return of_store | {f"accounts.{name}" for name in of_accounts - {"find", "put"}}


def outcome(aim: Aim, call: Callable[[], Any]) -> tuple[str, str]:
    """Return what a call answers: its value, or the type and the text of its error."""
    try:
        return "value", aim.hide(repr(call()))
    except DaypackError as error:
        return type(error).__name__, aim.hide(str(error))
