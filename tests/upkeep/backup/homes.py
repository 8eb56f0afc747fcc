"""A home with sessions, a memory, settings and everything else that a backup has to keep."""

import os
import shutil
from pathlib import Path

import daypack
from daypack.history.layout import Home
from daypack.upkeep.archive import Guard, archive

UID = "ada"
FACT = "The tide gauge listens on port 8080."


def furnished(root: str) -> Home:
    """Make a home of two users with a live and an archived session, a memory, settings and prompts."""
    home = Home(root, UID)
    with daypack.open_session("work", home=root, uid=UID, durability="os", workspace="") as session:
        session.pin("rule.md", "Answer in one sentence.")
        session.pin("long.md", "Tides turn. " * 500)
        session.append("user", "Which ferry do we take to the harbour?", client_key="k1")
        session.prepare(budget=8000)
        session.accept("The one at nine, from the old pier.")
        session.put_child("rev-1", handoff="Check the tide.", result="It is high.")
    with daypack.open_session("old", home=root, uid=UID, durability="os", workspace="") as session:
        session.append("user", "An older talk.")
    archive(home, "default", "old", Guard(0.0, force=True))
    with daypack.open_memory(home=root, uid=UID) as memories:
        memory = memories.create_memory("Harbour")
        memories.add_entry(memory.memory_id, FACT)
        memories.search_memories(memory.memory_id, "tide gauge")  # makes an index
    folder = Path(home.folder)
    (folder / "config.toml").write_text('model = "gpt-4o"\n')
    (folder / "erase.key").write_bytes(bytes(range(32)))
    (folder / "prompts").mkdir()
    (folder / "prompts" / "voice.md").write_text("Speak plainly.")
    (folder / "model").mkdir()
    (folder / "model" / "big.gguf").write_bytes(b"GGUF" * 100)
    with daypack.open_session("hers", home=root, uid="bo", durability="os", workspace="") as session:
        session.append("user", "Bo's own words.")
    return home


def said(root: str, name: str = "work", uid: str = UID) -> list[str]:
    with daypack.open_session(name, home=root, uid=uid, store="", create=False) as session:
        return [message.text for message in session.messages()]


def remembered(root: str, uid: str = UID) -> list[str]:
    with daypack.open_memory(home=root, uid=uid) as memories:
        return [
            entry.raw_entry
            for memory in memories.memories()
            for entry in memories.list_entries(memory.memory_id).entries
        ]


def leftovers(folder: str | Path) -> list[str]:
    """Return what an interrupted backup or restore left behind."""
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


def copy_home(source: str, target: Path) -> str:
    shutil.copytree(source, target)
    return str(target)
