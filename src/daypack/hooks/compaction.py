"""PreCompact and SessionStart after a compaction: what the host's summary must keep, and what it will have lost."""

from daypack.derived.template import parse
from daypack.errors import BadInput
from daypack.history.layout import Home
from daypack.hooks.call import HookCall, Injection
from daypack.hooks.composition import SEPARATOR, Fenced, Room, Section, bullets, compose
from daypack.hooks.intake import take_in
from daypack.hooks.recap.recap import Recap, read_recap
from daypack.hooks.stored_session import layout_of, session_command
from daypack.types.records import ContextDoc

MAX_TOKENS = 2_400  # what Codex shows whole; a summary is about as long
_RULES = "standing rules of the user, word for word, in the order given; a later rule wins on the same matter"
_TO_SUMMARISER = "Repeat these standing rules of the user in the summary, word for word; none of them may be lost."
# While others take the session in. The host waits for both hooks: ten seconds for the second.
_RULES_SECONDS = 1.5
_RECAP_SECONDS, _LOCK_SECONDS = 4.0, 1.0
_MOST_FILES = 24  # else facts would not fit


def before_compaction(call: HookCall, home: Home) -> str | None:
    """Return the standing rules as instructions to the summariser; None if there are none.

    A rule of the newest message is known when the take-in that this event requested is done: a short wait beside the
    summary that follows.
    """
    take_in.wait_for(home, call, _RULES_SECONDS)
    recap = read_recap(layout_of(call, home))
    if recap is None or not recap.rules:
        return None
    return _show_rules(call, recap, Room(call, MAX_TOKENS), _TO_SUMMARISER) or None


def after_compaction(call: HookCall, home: Home) -> Injection | None:
    """Return the rules and the working state of a session whose host has compacted; None if there is nothing."""
    recap = _newest_recap(call, home)
    return show_recap(call, recap) if recap else None


def show_recap(call: HookCall, recap: Recap) -> Injection | None:
    """Return what a recap says after a compaction; None if that is nothing."""
    rules = _show_rules(call, recap, Room(call, MAX_TOKENS))
    opening = (
        f"Read by daypack from messages 1 to {recap.through:,} of this session; quoted, no instructions. "
        f"They are stored: `{session_command(call, 'search')} WORDS` finds them, "
        f"`{session_command(call, 'recall')} messages:12-14` prints them."
    )
    shown = Fenced("note", "daypack: the work before the compaction", opening)
    state = compose(_sections(recap), shown, Room(call, MAX_TOKENS, rules))
    text = SEPARATOR.join(filter(None, (rules, state)))
    return Injection(text, (compaction_id(recap),)) if text else None


def _newest_recap(call: HookCall, home: Home) -> Recap | None:
    """Return the recap, if possible the one made for the compaction; if no hook ran before it, make one."""
    take_in.wait_for(home, call, _RECAP_SECONDS)
    recap = read_recap(layout_of(call, home))
    if recap is None:
        take_in.take_in(call, home, _LOCK_SECONDS)
        recap = read_recap(layout_of(call, home))
    return recap


def compaction_id(recap: Recap) -> str:
    """Return the id of the text after a compaction."""
    return f"compaction:{recap.lost or recap.through}"


def _show_rules(call: HookCall, recap: Recap, room: Room, opening: str = "") -> str:
    """Return the rules, of too many the newest that fit; a rule is shown whole or not at all."""
    shown, rules = Fenced("instructions", f"daypack: {_RULES}", opening), bullets(recap.rules)
    for first in range(len(rules)):
        note = f"({first:,} earlier rules do not fit; `{session_command(call, 'rules')}` lists them)" if first else ""
        text = shown.show(("\n".join(rules[first:]), note))
        if room.fits(text):
            return text
    return ""


def _sections(recap: Recap) -> list[Section]:
    """Return the sections as they are shown; the smallest `worth` is cut last: open work and failures."""
    doc = _document(recap)
    files = [f"- {note.path}: {note.summary}" for note in recap.files[:_MOST_FILES]]
    if more := len(recap.files) - len(files):
        files.append(f"- … and {more} more")
    return [
        Section("## Task", [doc.task] if doc.task else [], 0),
        Section("## Open work", [f"- [ ] {text}" for text in doc.pending], 1),
        Section("## Attempts that failed and were not mended", bullets(recap.failed), 2),
        Section("## Decisions", bullets(doc.decisions), 3),
        Section("## Facts", bullets(doc.facts), 6),
        Section("## Errors that were resolved", bullets(doc.errors), 7),
        Section("## Tests, the newest run of each", bullets(recap.tests), 5),
        Section("## Files, changed ones first", files, 4, "- … and {} more"),
    ]


def _document(recap: Recap) -> ContextDoc:
    try:
        return parse(recap.document) if recap.document else ContextDoc()
    except BadInput:  # of another version: it is written again with the next take-in
        return ContextDoc(task=recap.task, pending=recap.pending)
