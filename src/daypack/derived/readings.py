"""Readings: what a sentence says about something that changes. Of two readings of one matter the newer counts.

    The port is 8080.        ->  the value of "port"
    All 12 tests pass.       ->  the status of the tests
    The export is broken.    ->  the state of "export"

Two sentences on one matter with different readings contradict each other: only one of them can hold now.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from daypack.text.literals import literals
from daypack.text.words import content_words, count_negations, is_negation


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PREDICATES = frozenset(
    ("is", "are", "was", "were", "=", "to", "at", "on", "in", "uses", "use", "runs", "listens", "has", "takes", "needs")
)
_VALUE = re.compile(r"[~$€£]?v?\d[\d.,:%]*[a-zµ%]{0,3}[.,;]?")  # a number, perhaps with its unit: no path, no name
_GIVES_VALUE = re.compile(
    r"\b(?:is|are|was|were|has|listens on|runs on|lives (?:at|in|on)|set to|defaults? to|points to|uses|moved to)\b|=",
    re.IGNORECASE,
)
_CORRECTING = re.compile(
    r"(?:actually|correction|update|sorry|no|wait|i was wrong|edit)\b\s?[,:;.–—-]*\s+", re.IGNORECASE
)
_FILLING = frozenset(["now", "currently", "the", "a", "an", "still", "actually", "at", "in", "on"])
_WORD = re.compile(r"\w+(?:'\w+)*")

# What is measured anew after every step, and the words for its outcome.
_MEASURED = {
    "tests": r"tests?|specs?|doctests?|test suite|suite",
    "lint": r"lint(?:ing|er)?|linters|formatting",
    "build": r"builds?|compilation|compiles?|type ?check(?:s|ing)?",
    "checks": r"checks|ci|pipeline|jobs?",
}
_OUTCOME = (
    r"pass(?:es|ed|ing)?|fail(?:s|ed|ing|ures?)?|green|red|clean|succe(?:ed|eds|eded|ssful|ssfully)|broken|errors?|"
    r"warnings?|issues|ok"
)
_STATUS = {
    kind: re.compile(
        rf"\b(?:{words})\b[^.;]{{0,40}}\b(?:{_OUTCOME})\b|\b(?:{_OUTCOME})\b[^.;,]{{0,12}}\b(?:{words})\b", re.I
    )
    for kind, words in _MEASURED.items()
}
_COUNTED = re.compile(r"\b(?:\d[\d,]*|no|zero|all)\**\s+(?:passed|failed|failures?)\b", re.IGNORECASE)
_FAILING = re.compile(r"\b(?:fail(?:s|ed|ing|ures?)?|red|broken|errors?|not)\b|n't\b", re.IGNORECASE)
_NONE_FAILING = re.compile(
    r"\b(?:no|zero|0|without)\s+(?:\w+\s+)?(?:failures?|errors?|failed|failing)\b", re.IGNORECASE
)
# A test that must pass, or passes under a condition, has no outcome yet.
_WISHED = re.compile(
    r"\b(?:should|must|shall|would|could|might|may|will|if|when|until|unless|whether|once|to (?:make|"
    r"ensure|verify|check|"
    r"confirm|see|pass)|ensure|verify|make sure|let me|expects?|want|need)\b",
    re.IGNORECASE,
)
_STATUS_WORDS = _word_set(
    """
    all the full whole complete entire every test tests spec specs doctest doctests suite suites unit
    integration lint linting linter linters formatting build builds compilation compile compiles check checks
    ci pipeline job jobs type pass passes passed passing fail fails failed failing failure failures green red
    clean succeed succeeds succeeded successful successfully broken error errors warning warnings issue issues
    ok now still again already run runs running race detection including zero one two three four five six
    seven eight nine ten no not and with everything project committed pushed done good verified confirmed both
    """
)
_GOOD = _word_set(
    """
    works working work fixed resolved solved done complete completed finished merged deployed running up
    enabled available supported installed ready closed passing passes passed green stable active online exists
    present allowed implemented
    """
)
_BAD = _word_set(
    """
    broken failing fails fail failed red open pending blocked down disabled missing unavailable unsupported
    stopped stuck unresolved incomplete unstable inactive offline absent forbidden crashing crashes unfinished
    """
)
_STATE = re.compile(
    r"\b(?:is|are|was|were|isn't|aren't|wasn't|weren't|has been|have been|remains?|now|still|does|do|doesn't|don't)\s+"
    r"(?:(?:now|still|not|no longer|currently|again|fully|already|yet)\s+){0,2}"
    rf"(?P<state>{'|'.join(sorted(_GOOD | _BAD))})\b"
    r"|\b(?P<verb>works|fails|passes|crashes)\b",
    re.IGNORECASE,
)
_TIMES = _word_set(
    """
    now still currently again already yet today longer fully finally anymore however but also both previously
    before does
    """
)
_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|in place of|no longer(?: use| using)?|switch(?:ed|ing)? from|don't use|do not use|"
    r"never use|drop|not)\s+(?P<what>`[^`\n]{1,60}`|[\w./-]+(?:\s+[\w./-]+)?)",
    re.IGNORECASE,
)
_CHOOSING = re.compile(
    r"\b(?:use|using|uses|keep|go with|going with|prefer|choose|chose|stick with|decided|switch to|will be)\b",
    re.IGNORECASE,
)


# "`run_export()`: …", "**`run_export`** — …": an item about one name; a later report on it tells the newer state.
_LABEL = re.compile(r"\W*`(?P<name>[A-Za-z_][\w:]{3,60})(?:\(\))?`\**\s?(?:—|–|:)\s")


# "port 8443", "Node 20": a kind of value, and the value; with a word of change it replaces an earlier one.
_SLOT = re.compile(r"\b(?P<kind>[A-Za-z][A-Za-z+#.-]{1,30})\s+(?:v|version\s+)?(?P<value>\d[\w.]*\w|\d)")
_CHANGE = re.compile(
    r"\b(?:now|moved?|changed?|switch(?:ed)?|actually|instead|upgraded?|bump(?:ed)?|downgraded?|raised|lowered|"
    r"no longer|from now on|correction)\b",
    re.IGNORECASE,
)
_NUMBERED = _word_set(
    """
    line lines phase step part ticket issue pr task section chapter page item option milestone sprint week day test
    tests is are was were to of at in on by for from with and or the a an than all about only after before every
    till until
    """
)
# "keep 14 snapshots": a setting, by its verb and its unit.
_SETTING = re.compile(
    r"\b(?P<verb>keep|retain|allow|limit|wait|retry|store|use|set)s?\b(?:\s+\w+){0,3}?\s+(?P<value>\d[\w.]*)\s+"
    r"(?P<unit>[A-Za-z]{3,30})",
    re.IGNORECASE,
)
_BACK = re.compile(r"\b(?:restored?|re-?added|brought back|put back|reinstated)\b(?P<what>.*)", re.IGNORECASE)
_OUT = re.compile(r"\b(?:removed?|deleted?|dropped)\b(?P<what>.*)", re.IGNORECASE)
_SAME_THING = 2  # words in common
_PLAIN_VERBS = _word_set("use uses using run runs running listen listens need needs have has deploy moved now set")


class Matter(NamedTuple):
    """What a sentence gives a reading of; an empty scope of a status is the whole of it."""

    kind: str
    scope: frozenset[str] | str


def is_status(text: str) -> bool:
    """Return True if a sentence reports an outcome that is measured anew after every step."""
    return bool(_statuses(text))


def shows_failures(text: str) -> bool:
    """Return True if a status says that something failed: "0 failures" does not."""
    return _FAILING.search(_NONE_FAILING.sub("", text)) is not None


def readings(text: str) -> dict[Matter, str]:
    """Return the matters that a sentence gives a reading of."""
    found: dict[Matter, str] = {}
    for kind in _statuses(text):
        scope = frozenset(word for word in content_words(text) if word not in _STATUS_WORDS and not word[:1].isdigit())
        found[Matter(kind, scope)] = " ".join(text.casefold().split())
    correcting = _CORRECTING.match(text)
    bare = text[correcting.end() :] if correcting else text
    if (subject := _subject(bare)) and not found:
        found[Matter("value", subject[0])] = subject[1]
    state = _STATE.search(text)
    if state and not found:
        named = _state_words(text)
        if named:
            found[Matter("state", named)] = "good" if _is_good(state) != bool(count_negations(text) % 2) else "bad"
    if label := _LABEL.match(text):
        found[Matter("label", label["name"].lower())] = " ".join(text.casefold().split())
    said = [word for word in _plain(text).split() if not is_negation(word) and word not in ("do", "does", "did")]
    if len(said) > 1 or not text.isascii():
        words = re.sub(r"[不没別别勿无無]", "", " ".join(said))
        found[Matter("words", words)] = "denied" if count_negations(text) else "said"
    return found


def contradicts(newer: str, older: str) -> bool:
    """Return True if the newer of two sentences makes the older one history."""
    if changes_value(older, newer) or reverses(newer, older) or changes_slot(newer, older) or restores(newer, older):
        return True
    theirs = readings(older)
    for matter, reading in readings(newer).items():
        if matter in theirs and theirs[matter] != reading:
            return True
        if matter.kind in _MEASURED and not matter.scope and any(other.kind == matter.kind for other in theirs):
            return True
    return False


def superseded(texts: Sequence[tuple[int, str]]) -> dict[int, int]:
    """Return which of the sentences a later one makes history, by position; each with the number of its message.

    A message that gives several readings of one matter means several things: they do not replace each other.
    """
    gone: dict[int, int] = {}
    newest: dict[Matter, list[tuple[int, int, str]]] = {}
    whole: dict[str, tuple[int, int]] = {}
    for at, (seq, text) in enumerate(texts):
        for matter, reading in readings(text).items():
            newest.setdefault(matter, []).append((seq, at, reading))
            if matter.kind in _MEASURED and not matter.scope:
                whole[matter.kind] = (seq, at)
    for matter, group in newest.items():
        last_seq, last_at, last = group[-1]
        alone = _alone(group)
        gone.update((at, last_at) for seq, at, reading in group if seq < last_seq and reading != last and seq in alone)
        if matter.kind in whole:
            seq, by = whole[matter.kind]
            gone.update((at, by) for earlier, at, _ in group if at < by and (earlier < seq or not matter.scope))
    slotted = [at for at, (_, text) in enumerate(texts) if _slots(text) or _settings(text)]
    for at in slotted:
        if _CHANGE.search(texts[at][1]):
            earlier = (other for other in slotted if texts[other][0] < texts[at][0])
            gone.update((other, at) for other in earlier if changes_slot(texts[at][1], texts[other][1]))
    for at in (at for at, (_, text) in enumerate(texts) if _BACK.search(text)):
        gone.update(
            (other, at)
            for other in range(len(texts))
            if texts[other][0] < texts[at][0] and restores(texts[at][1], texts[other][1])
        )
    return gone


def _alone(group: Iterable[tuple[int, int, str]]) -> set[int]:
    """Return the messages that give exactly one reading of a matter."""
    given: dict[int, int] = {}
    for seq, _, _ in group:
        given[seq] = given.get(seq, 0) + 1
    return {seq for seq, count in given.items() if count == 1}


def changes_value(former: str, later: str) -> bool:
    """Return True if two sentences give different values of one thing: "the port is 8080", "the port is 9090".

    All words but one are the same, and that one is a value after the predicate. A value before the
    predicate names another subject: "ticket 4711 is open", "ticket 4712 is open".
    """
    first, second = _plain(former).split(), _plain(later).split()
    if len(first) != len(second):
        return False
    at = [place for place, (before, other) in enumerate(zip(first, second, strict=True)) if before != other]
    if len(at) != 1 or not (_VALUE.fullmatch(first[at[0]]) and _VALUE.fullmatch(second[at[0]])):
        return False
    return not _PREDICATES.isdisjoint(first[: at[0]])


def changes_slot(newer: str, older: str) -> bool:
    """Return True if the newer of two sentences says that a value has changed: "CI is on Node 20 now"."""
    if not _CHANGE.search(newer):
        return False
    settings = _settings(older)
    if any(settings.get(setting, value) != value for setting, value in _settings(newer).items()):
        return True
    theirs = _slots(older)
    for kind, value in _slots(newer).items():
        if theirs.get(kind, value) != value and _share_subject(newer, older, {kind, value, theirs[kind]}):
            return True
    return False


def restores(newer: str, older: str) -> bool:
    """Return True if the newer of two sentences says that what the older one took out is back."""
    back, out = _BACK.search(newer), _OUT.search(older)
    if not back or not out:
        return False
    return len(set(content_words(back["what"])) & set(content_words(out["what"]))) >= _SAME_THING


def _settings(text: str) -> dict[tuple[str, str], str]:
    found = _SETTING.finditer(text)
    return {(match["verb"].lower(), match["unit"].lower()): match["value"].lower() for match in found}


def _slots(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    several: set[str] = set()
    for match in _SLOT.finditer(text):
        kind = match["kind"].lower()
        if kind in found and found[kind] != match["value"].lower():
            several.add(kind)
        found[kind] = match["value"].lower()
    return {kind: value for kind, value in found.items() if kind not in several and kind not in _NUMBERED}


def _share_subject(first: str, second: str, without: set[str]) -> bool:
    """Return True if two sentences are about the same thing: a word in common, and no names that differ."""
    names = [{literal.text.lower() for literal in literals(text)} - without for text in (first, second)]
    if all(names) and not names[0] & names[1]:
        return False
    words = [set(content_words(text)) - without - _PLAIN_VERBS for text in (first, second)]
    return bool(words[0] & words[1])


def reverses(newer: str, older: str) -> bool:
    """Return True if a newer decision rejects by name what an older one chose."""
    if not _CHOOSING.search(older):
        return False
    rejected_before = {_plain(match["what"].strip("`")) for match in _INSTEAD.finditer(older)}
    for match in _INSTEAD.finditer(newer):
        what = match["what"]
        words = set(content_words(what))
        if not words or _plain(what.strip("`")) in rejected_before:
            continue
        named = (
            what.startswith("`") or any(literal.kind != "number" for literal in literals(what)) or what[:1].isupper()
        )
        if named and words <= set(content_words(older)):
            return True
    return False


def _statuses(text: str) -> list[str]:
    if _WISHED.search(text) or text.rstrip().endswith("?"):
        return []
    found = [kind for kind, pattern in _STATUS.items() if pattern.search(text)]
    return found or (["tests"] if _COUNTED.search(text) else [])


def _is_good(state: re.Match[str]) -> bool:
    word = (state["state"] or state["verb"]).lower()
    return word in _GOOD


def _state_words(text: str) -> frozenset[str]:
    return frozenset(
        word
        for word in content_words(text)
        if word not in _GOOD and word not in _BAD and word not in _TIMES and not is_negation(word)
    )


def _subject(text: str) -> tuple[str, str] | None:
    """Return what a sentence gives a value of, and the value, its last literal; None if it gives none."""
    found = literals(text)
    if not found or not _GIVES_VALUE.search(text, 0, found[-1].start):
        return None
    last = found[-1]
    before = [word for word in _words(text[: last.start]) if word not in _FILLING]
    if len(before) < 2:
        return None
    return f"{' '.join(before)} … {' '.join(_words(text[last.stop :]))}", last.text


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("’", "'"))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!;:。！")
