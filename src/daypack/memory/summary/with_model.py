"""Summaries written by a model, accepted only if the raw entry supports them; else made without the model."""

from daypack.errors import DaypackError
from daypack.llm.completion.port import Completer, Prompt
from daypack.memory.prompts import assemble
from daypack.memory.summary.speakers import ROLES
from daypack.memory.summary.summary import summarise_entry, trim_summary
from daypack.text.clean import clean
from daypack.text.literals import literals, occurs
from daypack.text.words import count_negations, stems_of
from daypack.types.memory import About

_MIN_SUPPORT = 0.5  # of a summary's words, in the entry or the document
_SUMMARY_TOKENS = 200
# Words a summary adds to report speech; they need no support.
REPORTING_STEMS = frozenset(
    stem
    for word in (*ROLES.values(), "state ask say said decide agree propose want plan need task confirmed others")
    for stem in stems_of(word)
)


def summarise_with(completer: Completer, prompt: str, raw: str, about: About | None, document: str | None) -> str:
    """Return a model's summary, or the one made without a model if the entry does not support it."""
    plain = summarise_entry(raw, about, document)
    about = about or About()
    speaker = about.author or ROLES.get((about.role or "").lower(), "unknown")
    user = f"Context document:\n{document or ''}\n\nSpeaker: {speaker}\nRaw entry:\n{raw}"
    answer = complete(completer, Prompt(assemble(prompt, "add_entry"), user, max_tokens=_SUMMARY_TOKENS))
    text = " ".join(answer.split()).removeprefix("Summary:").strip().strip('"“”')
    if not text:
        return plain
    source = f"{raw}\n{document or ''}\n{speaker}"
    words = stems_of(text) - REPORTING_STEMS
    supported = all(occurs(literal.text, source) for literal in literals(text))
    supported = supported and len(words & stems_of(source)) >= _MIN_SUPPORT * len(words)
    # A "not" that is lost or added reverses the meaning.
    reversed_meaning = (count_negations(text) > 0) != (count_negations(raw) > 0)
    return trim_summary(text) if supported and not reversed_meaning else plain


def complete(completer: Completer, prompt: Prompt) -> str:
    """Return a model's cleaned answer; empty if it failed or did not finish."""
    try:
        completion = completer.complete(prompt)
    except DaypackError:
        return ""
    return clean(completion.text)[0] if completion.finish == "stop" else ""
