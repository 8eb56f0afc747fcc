"""The compactor without a model: it picks sentences, and makes none.

Every bullet is a sentence or a clause of one message, a command or an error line, verbatim: it can be wrong only where
the speaker was. What a sentence is for is read off its cues, its literals, its speaker and its place; whether it still
holds, off what happened after it. Tool output is no source of sentences, since what matters of it is in the artifacts.
"""

import re
from collections.abc import Iterable, Sequence

from daypack.derived.artifacts.observations import Artifacts, CommandRun
from daypack.derived.compaction.account import Account
from daypack.derived.compaction.candidates import (
    Candidate,
    Ranked,
    Spot,
    as_finding,
    candidates,
    choose,
    newest_only,
    says_something,
    shorten,
    tidy,
)
from daypack.derived.compaction.diagnoses import find_errors
from daypack.derived.compaction.plans import LIST_KEY, Step
from daypack.derived.compaction.task import REQUEST_SENTENCES, FoundTask, find_task
from daypack.derived.compaction.timeline import Timeline
from daypack.derived.compaction.utterances import Utterance, read_conversation
from daypack.derived.compaction.validity import problem_of, timeliness
from daypack.derived.compaction.worth import is_intention, worth
from daypack.derived.raw_history import Raw
from daypack.derived.readings import is_status, shows_failures
from daypack.derived.template import MAX_BULLET_CHARS, MAX_BULLETS
from daypack.forks import cached_property
from daypack.text.cues.cues import find_cues, is_acknowledgement, words_of
from daypack.text.english import stem
from daypack.text.extract import score
from daypack.text.sentences import sentences
from daypack.text.words import stems_of
from daypack.types.compaction import Bullet, Section
from daypack.types.records import Todo

FLOORS: dict[Section, float] = {"decisions": 0.42, "facts": 0.3, "pending": 0.42}
_FALLBACK_FACTS = 4
_FALLBACK_MESSAGES = 60
_STEP_WEIGHT = 0.97
_ANSWER_WEIGHT = 0.95
_COMMAND_WEIGHT = 0.6
_COMMAND_CHARS = 120
_OPEN_WORDS = frozenset(map(stem, ["still", "need", "needs", "todo", "remember", "forget", "next", "later", "yet"]))
_FINISHED = re.compile(r"\b(?:is|are|was|were|been) (?:now |already )?\w{2,}ed\b", re.IGNORECASE)
_TESTS = "runs the tests"
# One test or one file, and a filter that only shortens the output.
_NARROW = re.compile(r" (?:-run|-k|--filter|--grep|-t|--only)[ =]|::|\.\w{1,4}:\d|_test\.|test_\w+\.|\.test\.|\.spec\.")
_FILTER = re.compile(
    r"(?:\s*2>&1)?(?:\s*\|\s*(?:head|tail|grep|egrep|less|wc|sort|cat|tee)\b(?:\"[^\"]*\"|'[^']*'|[^|&;\"'])*)*\s*$"
)
_OTHER_SCRIPT = re.compile(r"[\u0370-\u1fff\u2e80-\ud7ff]")  # neither Latin letters nor signs: the cues may not know it
# The commands of a project that are worth repeating exactly, by what they are for.
_PURPOSES = {
    _TESTS: re.compile(r"(?<![-\w])(?:tests?|spec|pytest)\b"),
    "builds or checks it": re.compile(
        r"\b(?:lint|build|compile|make|tsc|mypy|pyright|ruff|eslint|clippy|vet|dialyzer|credo|typecheck|check)\b"
    ),
    "sets it up or starts it": re.compile(
        r"\b(?:serve|server|start|compose up|runserver|migrate|install|setup|deploy)\b"
    ),
}


def extract(raw: Raw, artifacts: Artifacts, most: int = MAX_BULLETS) -> tuple[Bullet, ...]:
    """Return the bullets for CONTEXT.md, best first in each section, `most` of each at most."""
    return Extraction(raw, artifacts).bullets(most)


def finished(todos: Iterable[Todo], raw: Raw) -> frozenset[str]:
    """Return the ids of open work that these messages say is done."""
    return Extraction(raw, Artifacts()).finished(todos)


class Extraction:
    """A range of messages, read once; every sentence of it is accounted for."""

    def __init__(self, raw: Raw, artifacts: Artifacts, account: Account | None = None) -> None:
        self._raw = raw
        self._artifacts = artifacts
        self._account = account or Account()
        self._conversation = read_conversation(raw)
        self._lines = list(candidates(self._conversation.utterances, self._account))
        self.timeline = Timeline(raw.messages, self._conversation.utterances)

    def bullets(self, most: int) -> tuple[Bullet, ...]:
        """Return the bullets, best first in each section."""
        task = self._task()
        taken = set[str]()
        found = [task.bullet] if task else []
        if task and self.timeline.has_work:
            taken.add(task.bullet.text)
        found += self._section("decisions", self.holding("decisions"), taken, self._answers()[:most], most)
        if task:
            taken.add(task.bullet.text)
        found += self._section("pending", self._ranked("pending", self._open()), taken, self._steps()[:most], most)
        facts = self._section("facts", self.holding("facts"), taken, [], most)
        facts = facts or self._fallback(taken)[:most]
        found += facts + self._commands()[: max(0, most - len(facts))]
        found += self.errors()[:most]
        return tuple(found)

    def holding(self, section: Section) -> list[Ranked]:
        """Return the sentences that are worth something for a section and still hold, oldest first, however many."""
        return self._ranked(section, self._lines)

    def errors(self) -> list[Bullet]:
        """Return the errors that were explained or are still open."""
        return find_errors(self._artifacts, self._lines, self.timeline, self._raw.stop)

    def finished(self, todos: Iterable[Todo]) -> frozenset[str]:
        """Return the ids of open work that these messages say is done, or that a newer plan has dropped."""
        plans = self._conversation.plans
        listed = {" ".join(step.text.split()) for step in plans.open}

        def is_done(todo: Todo) -> bool:
            if LIST_KEY in todo.keys and plans.listed:
                return todo.text not in listed
            return not plans.closed.isdisjoint(todo.keys) or _is_reported(0, todo.text, self._reports)

        return frozenset(todo.id for todo in todos if not todo.done and is_done(todo))

    @cached_property
    def _reports(self) -> list[tuple[int, frozenset[str]]]:
        """Reports of finished work: message number and words."""
        return _reports(self._lines, self._conversation.plans.steps)

    def _task(self) -> FoundTask | None:
        closing = [line for line in self._lines if line.utterance.closing or line.utterance.voice == "user"]
        reports = _reports(closing, ())
        task = find_task(self._conversation.utterances, lambda bullet, seq: _is_reported(seq, bullet.text, reports))
        if task:
            self._account.offer(int(task.bullet.source.removeprefix("messages:")), task.sentence, task.bullet.text)
        return task

    def _ranked(self, section: Section, lines: Iterable[Candidate]) -> list[Ranked]:
        """Return the sentences that are worth something for a section and still hold, oldest first."""
        ranked: list[Ranked] = []
        for line in lines:
            value = worth(line, section)
            if value < FLOORS[section]:
                continue
            reason = problem_of(line, section, self.timeline)
            text = as_finding(line) if section == "facts" else line.text
            if reason or not text:
                self._account.lose(line.utterance.seq, line.sentence, reason or "narration")
                continue
            if section == "facts":
                value *= timeliness(line, self.timeline)
            ranked.append(Ranked(_worded(line, text), value))
        if section == "pending":
            return ranked
        kept, gone = newest_only(ranked)
        if self.timeline.has_work:
            kept, older = _newest_status(kept)
            gone += older
        for choice in gone:
            self._account.lose(choice.candidate.utterance.seq, choice.candidate.sentence, "superseded")
        return kept

    def _section(
        self, section: Section, ranked: Sequence[Ranked], taken: set[str], first: list[Bullet], most: int
    ) -> list[Bullet]:
        """Return the bullets of a section: those that are known for certain, then the best of the sentences."""
        bullets = [line for line in first if line.text not in taken]
        taken.update(bullet.text for bullet in bullets)
        for choice in ranked:
            self._account.lose(choice.candidate.utterance.seq, choice.candidate.sentence, "over_limit")
        chosen, repeating = choose(ranked, most + len(taken))
        for choice in chosen:
            line = choice.candidate
            text = shorten(line.text, MAX_BULLET_CHARS)
            if not text or (len(bullets) >= most and text not in taken):
                continue
            self._account.offer(line.utterance.seq, line.sentence, text, repeats=text in taken)
            if text not in taken:
                taken.add(text)
                bullets.append(_bullet(section, text, line.utterance.seq, choice.value))
        for choice, twin in repeating:
            line, text = choice.candidate, shorten(twin.candidate.text, MAX_BULLET_CHARS)
            self._account.offer(line.utterance.seq, line.sentence, text, repeats=True)
        return bullets

    def _answers(self) -> list[Bullet]:
        """Return what the user chose when an agent asked, newest first; a choice means nothing without its question."""
        found: list[Bullet] = []
        for seq, answer in self._conversation.answers:
            text = shorten(answer, MAX_BULLET_CHARS)
            if text == answer:
                found.append(_bullet("decisions", text, seq, _ANSWER_WEIGHT))
        return found[::-1]

    def _steps(self) -> list[Bullet]:
        """Return the open steps of the plans that no later report calls done."""
        closing = _reports([line for line in self._lines if line.utterance.reporting], ())
        found: dict[str, Bullet] = {}
        for step in self._conversation.plans.open:
            text = shorten(" ".join(step.text.split()), MAX_BULLET_CHARS)
            if text and not _is_reported(step.seq, text, closing):
                bullet = Bullet("pending", text, f"messages:{step.seq}", weight=_STEP_WEIGHT, keys=(step.key,))
                found.setdefault(text, bullet)
        return list(found.values())

    def _open(self) -> list[Candidate]:
        """Return the sentences about open work that no later one says to be done."""
        # "Now let me add the test": the step has begun.
        begun = [
            (action.utterance.seq, frozenset(map(stem, action.words)))
            for action in self._lines
            if action.cues.talk and action.utterance.acting
        ]
        still_open: list[Candidate] = []
        for line in self._lines:
            if not (line.cues.pending or line.context.pending or line.box):
                continue
            reports = self._reports + begun if is_intention(line) else self._reports
            if not _is_reported(line.utterance.seq, line.text, reports):
                still_open.append(line)
            elif worth(line, "pending") >= FLOORS["pending"]:
                self._account.lose(line.utterance.seq, line.sentence, "done")
        return still_open

    def _commands(self) -> list[Bullet]:
        """Return the commands that worked and were not seen to fail since: tests, a build or check, a start."""
        newest: dict[str, CommandRun] = {}  # by what they do
        for run in self._artifacts.commands:
            if run.result and run.does:
                newest[run.does[-1]] = run
        passed = {(test.seq, test.command) for test in self._artifacts.tests if test.outcome == "passed"}
        best: dict[str, CommandRun] = {}
        for run in newest.values():
            purpose = _purpose(run, passed)
            if purpose and not run.failed and run.exit in (0, None) and not _NARROW.search(run.command):
                best[purpose] = run
        found = [(purpose, run.seq, _FILTER.sub("", run.command)) for purpose, run in best.items()]
        return [
            Bullet("facts", command, f"messages:{seq}", weight=_COMMAND_WEIGHT, purpose=purpose)
            for purpose, seq, command in found
            if _is_exact(command)
        ]

    def _fallback(self, taken: set[str]) -> list[Bullet]:
        """Return the sentences that score best by place and literals alone: of a language without cues, say."""
        if self.timeline.has_work:
            return []  # an agent at work says much that is neither true for long nor of use
        found: list[tuple[float, Utterance, str, str]] = []
        seen = taken | {line.text for line in self._lines if not as_finding(line)}
        for utterance in self._conversation.utterances[::-1][:_FALLBACK_MESSAGES]:
            for scored in score(utterance.text)[:REQUEST_SENTENCES]:
                text = shorten(tidy(scored.text), MAX_BULLET_CHARS)
                if text in seen or not says_something(text, words_of(text)) or is_acknowledgement(text):
                    continue
                seen.add(text)
                if utterance.voice == "user" or (_OTHER_SCRIPT.search(text) and not find_cues(text).talk):
                    value = scored.score * (1.0 if utterance.voice == "user" else 0.7)
                    found.append((value, utterance, text, scored.text))
        found.sort(key=lambda pair: (-pair[0], -pair[1].seq))
        for _, utterance, text, sentence in found[:_FALLBACK_FACTS]:
            self._account.offer(utterance.seq, sentence, text)
        return [
            _bullet("facts", text, utterance.seq, 0.5 * value) for value, utterance, text, _ in found[:_FALLBACK_FACTS]
        ]


def _newest_status(ranked: Sequence[Ranked]) -> tuple[list[Ranked], list[Ranked]]:
    """Split off the results of tests and checks but the last: an agent measures again after every step."""
    statuses = [choice for choice in ranked if is_status(choice.candidate.text)]
    good = [choice for choice in statuses if not shows_failures(choice.candidate.text)]
    older = {id(choice) for choice in (statuses[:-1] if len(good) < len(statuses) else good[:-1])}
    return [choice for choice in ranked if id(choice) not in older], [
        choice for choice in ranked if id(choice) in older
    ]


def _worded(line: Candidate, text: str) -> Candidate:
    if text == line.text:
        return line
    return Candidate(text, line.cues, Spot(line.utterance, line.place), line.context, line.box, line.sentence)


def _bullet(section: Section, text: str, seq: int, weight: float) -> Bullet:
    return Bullet(section, text, f"messages:{seq}", weight=round(min(1.0, max(0.0, weight)), 4))


def _purpose(run: CommandRun, passed: set[tuple[int, str]]) -> str:
    if (run.seq, run.command) in passed:
        return _TESTS
    words = " ".join(word for word in run.does[-1].split() if "/" not in word and "." not in word)
    return next((purpose for purpose, pattern in _PURPOSES.items() if pattern.search(words)), "")


def _is_exact(command: str) -> bool:
    """Return True if a command is short enough to be kept whole, and one sentence."""
    return 3 < len(command) <= _COMMAND_CHARS and len(sentences(command)) == 1 and "<<" not in command


def _reports(lines: Sequence[Candidate], steps: Sequence[Step]) -> list[tuple[int, frozenset[str]]]:
    """Return reports of finished work: message number and words."""
    reported = [
        (line.utterance.seq, frozenset(map(stem, line.words)))
        for line in lines
        if (_is_done(line) and not line.cues.denied and not line.cues.asks and line.cues.pending < 1.0)
        or line.box in ("x", "X", "✓")
    ]
    return reported + [(step.seq, frozenset(stems_of(step.text))) for step in steps if step.done]


def _is_done(line: Candidate) -> bool:
    return bool(line.cues.done) or (line.utterance.reporting and _FINISHED.search(line.text) is not None)


def _is_reported(seq: int, text: str, reports: Sequence[tuple[int, frozenset[str]]]) -> bool:
    words = stems_of(text) - _OPEN_WORDS
    least = max(2, round(0.6 * len(words))) if len(words) > 1 else 1
    return any(at > seq and len(words & done) >= least for at, done in reports)
