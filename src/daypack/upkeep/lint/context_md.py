"""Convert a CONTEXT.md that was appended to or edited by hand to its template."""

import re

from daypack.derived.compaction.template_reader import read_filled
from daypack.derived.template import problems, render
from daypack.text.clean import clean

_HEADS = re.compile(r"^#{1,3}\s+(?:Context|Compaction Summary\b.*)$", re.MULTILINE | re.IGNORECASE)


def tidy_state(text: str) -> str:
    """Return the newest summary of a text in the template; a valid text is returned unchanged."""
    if not problems(text):
        return text
    starts = [match.start() for match in _HEADS.finditer(text)]
    newest = text[starts[-1] :] if starts else text
    filled, _ = read_filled(clean(newest)[0])
    return render(filled)
