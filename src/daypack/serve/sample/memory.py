"""The sample memory: what three people agreed about a small festival, and two versions of its document."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daypack.memory.tools import Memories

TITLE = "Harbour festival (sample)"

_ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    (
        "Ada",
        "2026-03-02T09:12:00Z",
        "planning",
        "I would like to run the harbour festival on Saturday 13 June this year.",
    ),
    (
        "Ben",
        "2026-03-02T09:15:00Z",
        "planning",
        "Good. The city wants 4,200 euros for the quay and an answer by 20 March.",
    ),
    ("Ada", "2026-03-02T09:21:00Z", "planning", "Then I book the quay today; the booking number is HF-2026-0613."),
    ("Chen", "2026-03-05T14:02:00Z", "music", "我可以邀请上海的爵士乐队，他们六月十二日到汉堡，需要四个房间。"),
    (
        "Ben",
        "2026-03-05T14:10:00Z",
        "music",
        "Four rooms at the Hotel Seemann are 96 euros a night each; I asked for two nights.",
    ),
    (
        "Ada",
        "2026-03-09T08:40:00Z",
        "food",
        "Nadia's bakery supplies 600 rolls, but nothing with nuts: her helper is allergic.",
    ),
    (
        "Ben",
        "2026-03-12T16:30:00Z",
        "safety",
        "The fire brigade insists on a free lane of 3.5 metres along the warehouses.",
    ),
    ("Chen", "2026-03-12T16:44:00Z", "safety", "So the stage moves to the north end, next to crane 7."),
    ("Ada", "2026-04-01T10:05:00Z", "money", "The savings bank sponsors 2,500 euros if its logo is on the posters."),
    ("Ben", "2026-04-01T10:20:00Z", "money", "Decision: we take the sponsor. Posters go to print on 24 April."),
    ("Chen", "2026-04-14T11:00:00Z", "planning", "If it rains we use hall B; the caretaker, Mr Okafor, has the key."),
    (
        "Ada",
        "2026-06-14T12:30:00Z",
        "planning",
        "It did not rain, 3,100 people came, and we made a surplus of 870 euros.",
    ),
)
_DOCUMENTS = (
    """# Harbour festival

## Participants
- Ada leads, Ben deals with the city and the fire brigade, Chen with the music

## Decisions
- The festival is on Saturday 13 June 2026; the quay is booked as HF-2026-0613

## Open tasks
- Ben: tell the city before 20 March 2026
""",
    """# Harbour festival

## Participants
- Ada leads, Ben deals with the city and the fire brigade, Chen with the music
- Nadia's bakery: rolls, nothing with nuts; Mr Okafor: key of hall B

## Stable facts
- The stage is at the north end, next to crane 7; along the warehouses a lane of 3.5 metres stays free

## Decisions
- The festival is on Saturday 13 June 2026; the quay is booked as HF-2026-0613
- The savings bank sponsors 2,500 euros for its logo on the posters

## Open tasks
- Ben: posters to the printer before 24 April 2026
""",
)


def make_memory(memories: "Memories") -> str:
    """Return the id of the sample memory, after creating what is missing of it."""
    found = next((memory for memory in memories.memories() if memory.title == TITLE), None)
    if found and found.stats.documents > len(_DOCUMENTS):  # a memory begins with a document that is a placeholder
        return found.memory_id
    memory = found or memories.create_memory(TITLE, "project", "A small project, to see what a memory holds.")
    has_first = bool(found and found.stats.documents == len(_DOCUMENTS))
    for number, (author, date, tag, raw) in enumerate(_ENTRIES):
        if number == len(_ENTRIES) // 2 and not has_first:
            memories.put_context(memory.memory_id, _DOCUMENTS[0])
        about = {"session": f"{tag}-{date[:10]}", "role": "person", "author": author, "at": date, "tags": (tag,)}
        # With a key per entry, a run after an interrupted one adds only what is missing.
        memories.add_entry(memory.memory_id, raw, about=about, client_key=f"sample-{number}")
    memories.put_context(memory.memory_id, _DOCUMENTS[1])
    memories.await_consistency(memory.memory_id)
    return memory.memory_id
