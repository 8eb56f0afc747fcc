"""Where Gemini CLI keeps its files: the folder of a project, the session of a sub-agent, the sub-agents of a session.

<home>/.gemini/projects.json                         {"projects":{"/src/app":"app"}}
<home>/.gemini/tmp/app/.project_root                 /src/app
<home>/.gemini/tmp/app/chats/session-<time>-<first 8 of the id>.jsonl
<home>/.gemini/tmp/app/chats/<id of the session>/<id of a sub-agent>.jsonl

Before it had names for projects, the folder in `tmp` was the SHA-256 of the project's path.
"""

import os
import re
from collections.abc import Iterator, Sequence
from glob import escape, iglob
from typing import Any

import msgspec

from daypack.importers.transcript import Row, digest_hex, first_text, list_of, object_of, parse_row, text_of
from daypack.plain_files import open_plain

_CHATS = "chats"
_SHORT = 8  # characters of an id in the name of a file
_MAX_BYTES = 1 << 20
_WORKSPACE = re.compile(r"- \*\*Workspace Directories:\*\*\n  - (/[^\n]+)")


def session_id(path: str, head: Sequence[Row]) -> tuple[str, str]:
    """Return the session id, and the id of the sub-agent if the file is that of a sub-agent."""
    about = [_about(row) for row in head]
    stem = os.path.basename(path).removesuffix(".jsonl").removesuffix(".json")
    name = first_text(fields.get("sessionId") for fields in about) or stem
    if any(fields.get("kind") == "subagent" for fields in about):
        return os.path.basename(os.path.dirname(os.path.abspath(path))), name
    return name, ""


def sub_agents_folder(path: str, session: str) -> str:
    """Return the folder with the sub-agents of a session, given its file and its id."""
    return os.path.join(os.path.dirname(os.path.abspath(path)), os.path.basename(session) or "none")


def main_file(path: str) -> str | None:
    """Return the file of the session, given that of a sub-agent; None if there is none."""
    folder = os.path.dirname(os.path.abspath(path))
    chats, session = os.path.split(folder)
    if os.path.basename(chats) != _CHATS:
        return None
    beginning = os.path.join(escape(chats), f"session-*-{escape(session[:_SHORT])}.json")
    found = [file for pattern in (f"{beginning}l", beginning) for file in sorted(iglob(pattern))]
    return next((file for file in found if _session_of(file) == session), None)


def find_cwd(path: str, agent: str, head: Sequence[Row]) -> str | None:
    """Return the folder that a session worked in, as the files beside it or its first rows say."""
    chats = os.path.dirname(os.path.abspath(path))
    project = os.path.dirname(os.path.dirname(chats) if agent else chats)
    root = _read(os.path.join(project, ".project_root")).decode(errors="surrogateescape").strip()
    return root or _registered(project, head) or _stated(head)


def _session_of(path: str) -> str | None:
    """Return the session in the first line of a file."""
    line = _read(path).partition(b"\n")[0]
    fields = parse_row(1, line).fields
    return text_of(fields.get("sessionId"))


def _registered(project: str, head: Sequence[Row]) -> str | None:
    """Return the folder that the list of projects has under the name of a project, or whose digest is that of a row."""
    name = os.path.basename(project)
    digests = {name, first_text(row.fields.get("projectHash") for row in head)}
    try:
        known: object = msgspec.json.decode(_read(os.path.join(project, "..", "..", "projects.json")) or b"{}")
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    for folder, label in object_of(object_of(known).get("projects")).items():
        if label == name or digest_hex(folder.encode("utf-8", "surrogatepass")) in digests:
            return folder
    return None


def _stated(head: Sequence[Row]) -> str | None:
    """Return the first folder in the context that Gemini CLI gives the model, or of those that it records."""
    for row in head:
        fields = object_of(row.fields.get("$set")) or row.fields
        if folder := first_text(list_of(fields.get("directories"))):
            return folder
        for message in list_of(fields.get("messages"))[:1]:
            for text in _texts(object_of(message).get("content")):
                if found := _WORKSPACE.search(text):
                    return found[1]
    return None


def _texts(content: object) -> Iterator[str]:
    for part in list_of(content):
        if text := text_of(object_of(part).get("text")):
            yield text


def _about(row: Row) -> dict[str, Any]:
    """Return the facts about the session that a row has: all of it, or those that it changes."""
    fields = row.fields
    return object_of(fields.get("$set")) or (fields if "projectHash" in fields else {})


def _read(path: str) -> bytes:
    try:
        with open_plain(path) as file:
            return file.read(_MAX_BYTES)
    except OSError:
        return b""
