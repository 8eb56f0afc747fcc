"""Compaction: what left the window becomes typed records, refs and swap records. History stays as it is.

`compact` only reads, and returns a value that is recorded as one event. The model's output is part of it, so that
every record can be checked.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from daypack.derived.artifacts.artifacts import join_refs, read_artifacts, refs_of
from daypack.derived.artifacts.observations import Artifacts
from daypack.derived.children import merged, read_children
from daypack.derived.compaction.account import Account
from daypack.derived.compaction.extractive import Extraction
from daypack.derived.compaction.retirement import retire
from daypack.derived.compaction.task import QUESTION_WEIGHT, is_task, seq_of
from daypack.derived.compaction.timeline import Timeline
from daypack.derived.compaction.utterances import reason_of
from daypack.derived.compaction.worth import weigh
from daypack.derived.raw_history import Raw, raw_of
from daypack.derived.readings import superseded
from daypack.derived.records import Folded, document, number_refs, update_records, without_lightest, words_of
from daypack.derived.swap import LARGE_TOKENS, preview, swap_output, swap_range
from daypack.derived.template import MAX_BULLET_CHARS, MAX_BULLETS, problems, render
from daypack.errors import DaypackError, NothingToCompact
from daypack.files.offsets import UNCOUNTED
from daypack.history.session import History
from daypack.llm.completion.port import Completer
from daypack.text.redact.redact import redact, redact_message
from daypack.text.sentences import sentences
from daypack.text.tokens import Counter as TokenCounter
from daypack.text.trim import trim
from daypack.text.words import content_words
from daypack.types.compaction import SECTIONS, Bullet, Compaction, FilledTemplate, Loss, LossReason, Records
from daypack.types.history import Message
from daypack.types.records import ErrorRecord, Fact, Ref, SwapRecord, Todo
from daypack.types.source import Messages, parse_source

NO_MODEL = "none"
MAX_LOSSES = 60  # reported one by one; the others are counted
_OFFERED = 20  # bullets of a section that are looked at; ten stay
_SLAB_BYTES = 4 << 20  # of a long range that is read at once


class CompactionRequest(Struct, frozen=True, kw_only=True):
    """The input of a compaction."""

    start: int
    through: int
    trigger: str = "manual"
    redacting: bool = True
    masked: tuple[int, ...] = ()  # outputs that the remaining messages show as one line
    unread: str = ""  # messages before the range that are left for a longer compaction
    reader_tokens: int = 128_000  # the window of the model that reads the result


def compact(
    history: History,
    folded: Folded,
    request: CompactionRequest,
    counter: TokenCounter,
    completer: Completer | None = None,
) -> Compaction:
    """Return the compaction of a range, on top of the earlier ones. Nothing is written."""
    reading = _Reading(history, request, folded.records)
    for raw in reading.slabs():
        reading.take(raw)
    filled = reading.ask_model(completer)
    bullets, over = _limited([_one_sentence(bullet) for bullet in _joined(filled.bullets, reading.bullets)])
    if _is_only_asked(folded, bullets) and not reading.has_done_task:
        over += [Loss(bullet.text, "question", bullet.source) for bullet in bullets if bullet.section == "task"]
        bullets = [bullet for bullet in bullets if bullet.section != "task"]
    update = update_records(folded, bullets, weigh, reading.retired, reading.cures)
    records = _with_task_state(update.records, folded.records, reading)
    found = (*reading.refs.values(), *(ref for child in read_children(history) for ref in merged(child)))
    refs = number_refs(folded, (_cleared(ref) for ref in found) if request.redacting else found, join_refs)
    unread = (Loss(request.unread, "unread", "too many messages to read within a turn"),) if request.unread else ()
    losses = _counted((*unread, *reading.unreadable(), *filled.losses, *update.losses, *over))
    swapped = reading.swapped()
    compaction = Compaction(
        source=f"messages:{request.start}-{request.through}"
        if request.through > request.start
        else f"messages:{request.start}",
        through=request.through,
        trigger=request.trigger,
        method="structured_digest" if filled.bullets else "extractive_summary",
        model=completer.name if completer else NO_MODEL,
        before_tokens=(folded.current.before_tokens if folded.current else 0) + reading.tokens_outside(folded.accepted),
        after_tokens=0,
        coverage=_coverage(reading, filled),
        losses=losses,
        records=records,
        refs=refs,
        swapped=swapped,
        output={"texts": list(filled.outputs)} if filled.outputs else None,
    )
    return _settled(_weighed(compaction, counter), reading)


def _settled(compaction: Compaction, reading: "_Reading") -> Compaction:
    """Close the account of the range: list what was not read, the counts, and then lost texts up to the limit."""
    records = compaction.records
    dropped = {loss.what: loss.reason for loss in (*compaction.losses, *reading.dropped)}
    every = (*records.decisions, *records.facts, *records.todos, *records.errors)
    said = [(record.source, words_of(record)) for record in every]
    if records.task:
        said.append((records.task.source, records.task.text))
    account = reading.account.close(said, dropped)
    unread = tuple(loss for loss in compaction.losses if loss.reason in ("unread", "unreadable"))
    losses = (*unread, *account.losses, *(loss for loss in compaction.losses if loss not in unread))
    counts = {
        "bullets": len(said),
        "losses": len(losses),
        "sentences": account.sentences,
        "sentences_kept": account.kept,
        "sentences_covered": account.covered,
        "output_lines": account.output_lines,
    }
    coverage = compaction.coverage | {name: count for name, count in counts.items() if count or name == "bullets"}
    return replace(compaction, coverage=coverage, losses=losses[:MAX_LOSSES])


class _Reading:
    """Reads a range once, slab by slab, and keeps what the compaction is made of."""

    def __init__(self, history: History, request: CompactionRequest, former: Records) -> None:
        self._history = history
        self._request = request
        self._former = former
        reader = history.messages.reader
        self._slots = reader.slots(reader.position(request.start), reader.position(request.through) + 1)
        self._tokens = {slot.seq: slot.tokens for slot in self._slots if slot.tokens != UNCOUNTED}
        self._outputs: list[SwapRecord] = []
        self._digest: list[Message] = []
        self.account = Account()
        self.bullets: list[Bullet] = []
        self.dropped: list[Loss] = []  # bullets of earlier slabs that do not hold any more
        self.retired: dict[str, LossReason] = {}  # records that do not hold any more
        self.cures: dict[str, str] = {}  # of earlier errors
        self.has_done_task = False  # of the earlier compactions
        self.task_done = False  # of this range
        self._task_seq = 0
        self.refs: dict[str, Ref] = {}
        self.last: Raw | None = None
        self.read = 0
        self.opening = ""

    @property
    def tokens(self) -> int:
        """The tokens of the range."""
        return sum(self._tokens.values())

    def tokens_outside(self, compactions: Iterable[Compaction]) -> int:
        """Return the tokens of the range without those that earlier compactions counted."""
        sources = [parse_source(compaction.source) for compaction in compactions]
        counted = [source for source in sources if isinstance(source, Messages) and source.stop >= self._request.start]
        return sum(
            tokens
            for seq, tokens in self._tokens.items()
            if not any(source.start <= seq <= source.stop for source in counted)
        )

    @property
    def messages(self) -> int:
        """The messages of the range, damaged ones too."""
        return len(self._slots)

    @property
    def damaged(self) -> int:
        """The messages that cannot be read."""
        return self.messages - self.read

    def slabs(self) -> Iterator[Raw]:
        """Return the range in pieces of bounded size."""
        start, size = self._request.start, 0
        for slot in self._slots:
            size += slot.length
            if size > _SLAB_BYTES:
                yield self._slab(start, slot.seq)
                start, size = slot.seq + 1, 0
        if start <= self._request.through:
            yield self._slab(start, self._request.through)

    def _slab(self, start: int, stop: int) -> Raw:
        messages = tuple(self._history.messages.records(start, stop))
        self.read += len(messages)
        for message in messages:
            tokens = self._tokens.get(message.seq)
            if tokens is None:  # a rebuilt sidecar has no counts yet
                tokens = self._tokens[message.seq] = self._history.count_tokens(message)
            if message.role == "tool" and tokens > LARGE_TOKENS:
                self._swap(message, tokens)
        raw = raw_of(messages, start, stop, redacting=self._request.redacting)
        own = {message.seq for message in raw.messages}
        for message in messages:
            if message.seq not in own:
                self.account.enter(message, "injected")
        for message in raw.messages:
            self.account.enter(message, reason_of(message))
        if not self.opening:
            self.opening = next(
                (preview(asked.text) for asked in raw.messages if asked.role == "user" and asked.text), ""
            )
        return raw

    def _swap(self, message: Message, tokens: int) -> None:
        shown = redact_message(message)[0].text if self._request.redacting else message.text
        self._outputs.append(swap_output(message, shown, tokens))

    def take(self, raw: Raw) -> None:
        """Read one slab without a model."""
        artifacts = read_artifacts(raw)
        for ref in refs_of(artifacts):
            known = self.refs.get(ref.path)
            self.refs[ref.path] = join_refs(known, ref) if known else ref
        extraction = Extraction(raw, artifacts, self.account)
        found = list(extraction.bullets(_OFFERED))
        self._follow_task(found, extraction.timeline)
        retired = retire(self._former, extraction, artifacts)
        self.retired |= retired.reasons
        self.cures |= retired.cures
        # The newest slab says what the task is, if it says that at all, and what is done.
        kept = _standing(self.bullets, extraction, artifacts)
        if any(bullet.section == "task" for bullet in found):
            kept = [(bullet, reason or ("superseded" if bullet.section == "task" else None)) for bullet, reason in kept]
        self.dropped += [Loss(bullet.text, reason, bullet.source) for bullet, reason in kept if reason]
        self.bullets = [bullet for bullet, reason in kept if reason is None] + found
        self.account.settle()
        self.last = raw

    def _follow_task(self, found: Sequence[Bullet], timeline: Timeline) -> None:
        """Note whether the agent has done the task: that of the earlier compactions, or the one of this range."""
        task = next((bullet for bullet in found if bullet.section == "task"), None)
        if self._former.task and timeline.is_worked_off(seq_of(self._former.task.source)):
            self.has_done_task = True
        if task:
            self.task_done = timeline.is_worked_off(seq_of(task.source))
        elif self._task_seq:
            self.task_done = self.task_done or timeline.is_worked_off(self._task_seq)
        self._task_seq = seq_of(task.source) if task else self._task_seq

    def unreadable(self) -> tuple[Loss, ...]:
        """Return the loss of the messages that cannot be read."""
        if not self.damaged:
            return ()
        source = str(Messages(self._request.start, self._request.through))
        return (Loss(f"{self.damaged:,} messages", "unreadable", f"damaged, among {source}"),)

    def ask_model(self, completer: Completer | None) -> FilledTemplate:
        """Let a model read the newest slab; return nothing without a model, or if it cannot be reached."""
        if completer is None or self.last is None:
            return FilledTemplate((), (), ())
        from daypack.derived.compaction.with_model import fill  # noqa: PLC0415 — only for those who have a model

        try:
            filled = fill(self.last, completer, self._request.reader_tokens, self._history.layout.prompts)
            return self._without_other_task(filled)
        except DaypackError as error:
            return FilledTemplate((), (Loss(self.last.source, "unread", f"the model failed: {error.problem}"),), ())

    def _without_other_task(self, filled: FilledTemplate) -> FilledTemplate:
        """Drop a task that is not what the user asked for: words from history do not make a line the task."""
        found = next((bullet for bullet in self.bullets if bullet.section == "task"), None)
        messages = self.last.messages if self.last else ()
        user_texts = {message.seq: message.text for message in messages if message.role == "user"}
        kept: list[Bullet] = []
        losses = list(filled.losses)
        for bullet in filled.bullets:
            if bullet.section != "task":
                kept.append(bullet)
            elif is_task(bullet, found, user_texts):
                kept.append(replace(bullet, weight=found.weight) if found else bullet)
            else:
                losses.append(Loss(bullet.text, "ungrounded", "not what the user asked for"))
        return replace(filled, bullets=tuple(kept), losses=tuple(losses))

    def swapped(self) -> tuple[SwapRecord, ...]:
        """Return the records of what left the window: the range, and each large output in it."""
        start, stop = self._request.start, self._request.through
        summary = f"{self.messages:,} messages" + (f", beginning: {self.opening}" if self.opening else "")
        for message in self._history.messages.reader.pick(list(self._request.masked)):
            self._swap(message, self._history.count_tokens(message))
        messages = self._history.messages.records(start, stop)
        return (swap_range(messages, start, stop, summary, self.tokens), *self._outputs)


def _is_only_asked(folded: Folded, bullets: Sequence[Bullet]) -> bool:
    """Return True if the range only asks a question in between, and the earlier task continues."""
    former = folded.records.task
    task = next((bullet for bullet in bullets if bullet.section == "task"), None)
    return bool(task and former and not former.done and 0 < task.weight <= QUESTION_WEIGHT < former.weight)


def _standing(
    bullets: Sequence[Bullet], extraction: Extraction, artifacts: Artifacts
) -> list[tuple[Bullet, LossReason | None]]:
    """Return the bullets of earlier slabs, and why some of them do not hold after this one."""
    made = {f"{bullet.section[0]}{at}": bullet for at, bullet in enumerate(bullets, 1)}
    records = Records(
        facts=tuple(
            Fact(name, bullet.text, bullet.source) for name, bullet in made.items() if bullet.section == "facts"
        ),
        todos=tuple(
            Todo(name, bullet.text, bullet.source, keys=bullet.keys)
            for name, bullet in made.items()
            if bullet.section == "pending"
        ),
        errors=tuple(
            ErrorRecord(name, bullet.text, bullet.source, keys=bullet.keys)
            for name, bullet in made.items()
            if bullet.section == "errors" and not bullet.resolution
        ),
    )
    retired = retire(records, extraction, artifacts)
    return [
        (replace(bullet, resolution=retired.cures.get(name, bullet.resolution)), retired.reasons.get(name))
        for name, bullet in made.items()
    ]


def _with_task_state(records: Records, former: Records, reading: _Reading) -> Records:
    """Record in the task whether it was done."""
    task = records.task
    if task is None:
        return records
    same = former.task is not None and former.task.text == task.text
    done = reading.task_done or (same and (reading.has_done_task or (former.task is not None and former.task.done)))
    return replace(records, task=replace(task, done=done)) if done != task.done else records


def _limited(bullets: Sequence[Bullet]) -> tuple[list[Bullet], list[Loss]]:
    """Keep the best ten of each section that do not contradict each other; report the others as losses."""
    stated = [bullet for bullet in bullets if bullet.section in ("decisions", "facts") and not bullet.purpose]
    timed = sorted(stated, key=lambda bullet: seq_of(bullet.source))
    gone = {timed[at].text for at in superseded([(seq_of(bullet.source), bullet.text) for bullet in timed])}
    kept: list[Bullet] = []
    over: list[Loss] = []
    for section in SECTIONS:
        own = list({bullet.text: bullet for bullet in bullets if bullet.section == section}.values())
        if section in ("decisions", "facts"):
            over += [Loss(bullet.text, "superseded", bullet.source) for bullet in own if bullet.text in gone]
            own = [bullet for bullet in own if bullet.text not in gone]
        kept += own[:MAX_BULLETS]
        over += [Loss(bullet.text, "over_limit", bullet.source) for bullet in own[MAX_BULLETS:]]
    return kept, over


def _says_something(text: str) -> bool:
    """Return True if a model's line is more than a number or a word: small models fill lines with anything."""
    return len(content_words(text)) > 1


def _counted(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Return equal losses once, with their count."""
    counts = Counter(losses)
    return tuple(
        loss
        if times == 1
        else replace(loss, detail=f"{loss.detail}, {times} times" if loss.detail else f"{times} times")
        for loss, times in counts.items()
    )


def _one_sentence(bullet: Bullet) -> Bullet:
    """Keep the first sentence: what an error says is often more than one."""
    found = sentences(bullet.text)
    text = trim(" ".join((found[0].text if found else bullet.text).split()), MAX_BULLET_CHARS)
    return bullet if text == bullet.text else replace(bullet, text=text)


def _cleared(ref: Ref) -> Ref:
    """Addresses and what children say may hold secrets; they do not leave through refs."""
    return replace(ref, path=redact(ref.path).text, summary=redact(ref.summary).text)


def _joined(first: Sequence[Bullet], second: Sequence[Bullet]) -> tuple[Bullet, ...]:
    """Return the model's bullets, and in each section what the other compactor has to fill it."""
    kept: list[Bullet] = []
    for section in SECTIONS:
        own = [bullet for bullet in first if bullet.section == section and _says_something(bullet.text)]
        more = [bullet for bullet in second if bullet.section == section]
        if section == "task":
            kept += (own or more)[:1]
            continue
        said = {bullet.text.casefold() for bullet in own}
        kept += own
        kept += [bullet for bullet in more if bullet.text.casefold() not in said]
    return tuple(kept)


def _coverage(reading: _Reading, filled: FilledTemplate) -> dict[str, int]:
    found = {
        "messages": reading.messages,
        "read": reading.read,
        "damaged": reading.damaged,
        "read_by_model": len(reading.last.messages) - filled.unread if filled.outputs and reading.last else 0,
        "bullets_by_model": len(filled.bullets),
        "files": len(reading.refs),
    }
    return {name: count for name, count in found.items() if count or name in ("messages", "read")}


def _weighed(compaction: Compaction, counter: TokenCounter) -> Compaction:
    """Weigh the result; one that is not valid, or not smaller than its source, gives up its lightest bullets."""
    losses = list(compaction.losses)
    records = compaction.records
    while True:
        text = render(document(records))
        after = counter.count(text)
        wrong = problems(text)
        if after < compaction.before_tokens and not wrong:
            return replace(compaction, after_tokens=after, records=records, losses=tuple(losses))
        records, lost = without_lightest(records)
        if lost is None:
            problem = wrong[0] if wrong else f"{after:,} tokens would replace {compaction.before_tokens:,}"
            raise NothingToCompact(
                problem,
                operation="compact",
                place=compaction.source,
                hint="the former files stay; compact again when more has been said",
            )
        losses.append(lost)
