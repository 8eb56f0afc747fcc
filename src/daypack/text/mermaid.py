"""Mermaid: the number of nodes of a diagram, if it is certain.

Flow charts, state and sequence diagrams are read, strictly: what this reader does not know, or what Mermaid itself
refuses (a bracket in a label that is not quoted), has no count.
"""

import re
from collections.abc import Iterator

FENCED = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*mermaid[ \t]*\n", re.MULTILINE | re.IGNORECASE)
_HEAD = re.compile(
    r"(?P<flow>graph|flowchart)\b[ \t]*(?:TB|TD|BT|RL|LR)?|(?P<state>stateDiagram(?:-v2)?)|(?P<talk>sequenceDiagram)"
)
_ID = r"[A-Za-z0-9_]+(?:-(?![-.])[A-Za-z0-9_]+)*"
# A label in quotation marks may hold anything; one without holds no bracket.
_TEXT = r"(?:\"[^\"\n]*\"|[^\"()\[\]{}<>\n]+)"
_SHAPES = (
    (r"\(\(\(", r"\)\)\)"),
    (r"\(\(", r"\)\)"),
    (r"\(\[", r"\]\)"),
    (r"\[\(", r"\)\]"),
    (r"\[\[", r"\]\]"),
    (r"\[[/\\]", r"[/\\]\]"),
    (r"\(", r"\)"),
    (r"\[", r"\]"),
    (r"\{\{", r"\}\}"),
    (r"\{", r"\}"),
    (r">", r"\]"),
)
_SHAPE = "|".join(f"{opened}{_TEXT}{closed}" for opened, closed in _SHAPES)
_NODE = re.compile(rf"(?P<id>{_ID})(?:{_SHAPE})?(?::::[A-Za-z0-9_]+)?[ \t]*")
_EDGE = re.compile(
    r"(?:<|[xo](?=[-=.]))?(?:--+(?:[->xo])?|==+(?:[=>xo])?|-\.+-(?:[>xo])?|~~~+)[ \t]*(?:\|[^|\n]*\|)?[ \t]*"
)
_WORDED = re.compile(
    r"(?:--|==|-\.)[ \t]+(?:\"[^\"\n]*\"|[^-=.|\n\"()\[\]{}])+?[ \t]*(?:--+[->xo]?|==+[=>xo]?|\.+-[>xo]?)[ \t]*"
)
_PASSED = re.compile(
    r"(?:classDef|class|style|linkStyle|click|direction|title|accTitle|accDescr|note|Note|autonumber|activate|deactivate)\b"
)
_BLOCK = re.compile(r"(?:subgraph|end|loop|alt|else|opt|par|and|rect|break|critical|option|box)\b")
_STATE = re.compile(
    rf"(?:state[ \t]+(?:\"[^\"\n]*\"[ \t]+as[ \t]+)?)?(?P<first>\[\*\]|{_ID})"
    rf"(?:[ \t]*-->[ \t]*(?P<second>\[\*\]|{_ID}))?(?:[ \t]*:[^\n]*)?(?:[ \t]*\{{)?|\}}|--"
)
_ACTOR = re.compile(rf"(?:participant|actor)[ \t]+(?P<id>{_ID})(?:[ \t]+as[ \t]+[^\n]+)?")
_MESSAGE = re.compile(
    rf"(?P<first>{_ID})[ \t]*(?:-->>|->>|-->|->|--x|-x|--\)|-\))[+-]?[ \t]*(?P<second>{_ID})[ \t]*:[^\n]*"
)


def count_nodes(source: str) -> int | None:
    """Return the number of nodes of a Mermaid diagram; None if it is not certain."""
    lines = [line for part in source.split("\n") if (line := part.partition("%%")[0].strip().rstrip(";").strip())]
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if head is None:
        return None
    read = _flow if head["flow"] else _states if head["state"] else _talk
    nodes: set[str] = set()
    for line in lines[1:]:
        if _PASSED.match(line):
            continue
        found = None if read is _states else _BLOCK.match(line)
        if found:
            continue
        named = read(line)
        if named is None:
            return None
        nodes.update(named)
    return len(nodes)


def blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, stop and text of each Mermaid block of a Markdown text; an unclosed block ends with the text."""
    at = 0
    while (opened := FENCED.search(text, at)) is not None:
        closing = re.compile(rf"^[ \t]*{re.escape(opened['fence'])}[`~]*[ \t]*$", re.MULTILINE)
        closed = closing.search(text, opened.end())
        stop = len(text) if closed is None else closed.end()
        yield opened.start(), stop, text[opened.end() : len(text) if closed is None else closed.start()]
        at = max(stop, opened.end())


def _flow(line: str) -> list[str] | None:
    """Return the nodes of one statement of a flow chart: nodes joined by edges and ampersands."""
    nodes: list[str] = []
    at = 0
    while True:
        node = _NODE.match(line, at)
        if node is None:
            return None
        nodes.append(node["id"])
        at = node.end()
        if at == len(line):
            return nodes
        if line[at] == "&":
            at += 1 + len(line[at + 1 :]) - len(line[at + 1 :].lstrip())
            continue
        edge = _WORDED.match(line, at) or _EDGE.match(line, at)
        if edge is None or edge.end() == at:
            return None
        at = edge.end()


def _states(line: str) -> list[str] | None:
    found = _STATE.fullmatch(line)
    if found is None:
        return None
    first, second = found["first"], found["second"]
    # Beginning and end are written alike and drawn as two nodes.
    return [end for end in (first, f"{second} end" if second == "[*]" else second) if end]


def _talk(line: str) -> list[str] | None:
    actor = _ACTOR.fullmatch(line)
    if actor:
        return [actor["id"]]
    message = _MESSAGE.fullmatch(line)
    return [message["first"], message["second"]] if message else None
