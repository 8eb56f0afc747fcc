"""Child agents of an imported session: a session of their own, and their result with the parent."""

from daypack.derived.children import put_child, read_children
from daypack.importers.transcript import safe_name
from daypack.session import Session


def child_session(parent: str, name: str) -> str:
    """Return the name of the session that holds what a child said."""
    return safe_name(f"{parent}--{name}")


def conclude(parent: Session, name: str, child: Session) -> bool:
    """Tell the parent what the child was asked and answered; say whether that is news."""
    handoff = next((one.text for one in child.messages() if one.role == "user"), None)
    result = _last_answer(child)
    known = [one for one in read_children(parent.history) if one.name == name]
    if known and (known[0].handoff, known[0].result) == (handoff, result):
        return False
    put_child(parent.history, name, handoff=handoff, result=result)
    return True


def _last_answer(session: Session) -> str | None:
    for count in (50, len(session.messages())):
        for message in reversed(session.tail(count)):
            if message.role == "assistant" and message.text.strip():
                return message.text
    return None
