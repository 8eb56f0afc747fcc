"""What an event says, in words: one line for every type that daypack writes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from daypack.cli.terminal import counted, json_text
from daypack.turn.evidence.words import EPOCHS, TRIGGERS
from daypack.types.history import Event

Data = Mapping[str, Any]
CountTokens = Callable[[str], int]


def describe_event(event: Event, count_tokens: CountTokens) -> str:
    """Return what happened; of an unknown type, or with other data than expected, the type and the data."""
    try:
        if event.type == "pin.set":
            return _pin_set(event.data, count_tokens)
        if describe := WORDS.get(event.type):
            return describe(event.data)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        pass  # an event of another program that only shares the type
    return f"{event.type}  {json_text(event.data)}" if event.data else event.type


def _pin_set(data: Data, count_tokens: CountTokens) -> str:
    size = counted(count_tokens(data["text"]), "token") if "text" in data else counted(data["bytes"], "byte")
    return f"pinned {data['name']} ({size})"


def _pin_removed(data: Data) -> str:
    return f"unpinned {data['name']}"


def _state(data: Data) -> str:
    return f"state changed from {data['from']} to {data['to']}"


def _torn(data: Data) -> str:
    if data["file"] is None:
        return f"completed the last line of {data['log']}: its line break was missing"
    return f"moved {counted(data['bytes'], 'half-written byte')} of {data['log']} to {data['file']}"


def _turn(data: Data) -> str:
    tokens, budget = data["used"][0], data["limits"].get("tokens")
    size = counted(tokens, "token") if budget is None else f"{tokens:,} of {budget:,} tokens"
    turn = "turn" if data["target"] == "model" else f"turn for {data['target']}"
    if data.get("epoch"):
        return f"{turn}: {size}, continues {data['epoch']}"
    reason = str(data["opening"]["reason"])
    return f"{turn}: {size}, new epoch: {EPOCHS.get(reason, reason)}"


def _observed(data: Data) -> str:
    messages = counted(data["keep"] + len(data["tail"]) if "keep" in data else len(data["tail"]), "message")
    return (
        f"{data['program']} called {data.get('model') or 'a model'} with {messages}, {len(data['tail']):,} of them new"
    )


def _usage(data: Data) -> str:
    amounts = (("input_tokens", "input"), ("output_tokens", "output"))
    used = [f"{data[name]:,} {noun} tokens" for name, noun in amounts if name in data]
    if "cached_tokens" in data:
        used.insert(1, f"{data['cached_tokens']:,} cached")
    return f"reply {data['message']} used {', '.join(used)}"


def _snapshot(data: Data) -> str:
    broken = sum(data.get("violation_counts", {}).values()) or len(data.get("violations", ()))
    problems = f"; {counted(broken, 'violation')}" if broken else ""
    if not data.get("snapshot"):
        return f"reply {data['message']} had no usable snapshot{problems}"
    blocks = [f"{len(found):,} {tier}" for tier, found in data["snapshot"]["memory"].items() if found]
    contents = f"with blocks: {', '.join(blocks)}" if blocks else "without blocks"
    return f"reply {data['message']} had a snapshot {contents}{problems}"


def _compacted(data: Data) -> str:
    trigger = str(data["trigger"])
    sizes = f"{data['before_tokens']:,} → {data['after_tokens']:,} tokens"
    return f"compacted {_messages(data['source'])}: {sizes}, {TRIGGERS.get(trigger, trigger)}"


def _undone(data: Data) -> str:
    return f"undid the compaction {data['compaction']}"


def _compaction_failed(data: Data) -> str:
    return f"compaction with {data['model']} failed: {data['problem']}"


def _budget(data: Data) -> str:
    text = " ".join(str(data["text"]).split())
    return f"budget set to {int(text):,} tokens" if text.isdecimal() else f"budget set to {text or 'the default'}"


def _switch(data: Data) -> str:
    return f"switched {data['name']} {'on' if data['on'] else 'off'}"


def _rules_found(data: Data) -> str:
    where = f"messages {_span(data['first'], data['through'])}"
    rules: Sequence[Mapping[str, Any]] = data.get("rules", ())
    if not rules:
        return f"no standing rule in {where}"
    return f"{counted(len(rules), 'standing rule')} in {where}: {'; '.join(_text(rule['text']) for rule in rules)}"


def _rule_added(data: Data) -> str:
    return f"added {data['rule']['id']}: {_text(data['rule']['text'])}"


def _rule_dropped(data: Data) -> str:
    return f"dropped {data['id']}"


def _rule_pinned(data: Data) -> str:
    return f"{'pinned' if data['on'] else 'unpinned'} {data['id']}"


def _asked(data: Data) -> str:
    source = data.get("requested_from")
    asked = f" {source if isinstance(source, str) else json_text(source)}" if source else ""
    return f"asked{asked} {data['missing_id']}: {_text(data['question'])}"


def _detected(data: Data) -> str:
    return f"missing {data['missing_id']}: {_text(data['question'])}"


def _answered(data: Data) -> str:
    refs = data.get("resolution_refs", ())
    where = f": {', '.join(ref if isinstance(ref, str) else json_text(ref) for ref in refs)}" if refs else ""
    return f"{data.get('status', 'resolved')} the question {data['missing_id']}{where}"


def _exported(data: Data) -> str:
    return f"exported the {data['scope']} for {data['target']} as {data['context_id']}"


def _imported(data: Data) -> str:
    return f"imported the envelope {data['context_id']} ({counted(data['items'], 'item')})"


def _child(data: Data) -> str:
    parts = [part for part in ("handoff", "result", "refs") if part in data]
    if artifacts := data.get("artifacts"):
        parts.append(counted(len(artifacts), "artifact"))
    changes = " and ".join(data.get("changes", ()))
    state = f"{changes}, now {data['status']}" if changes else f"is {data['status']}"
    return f"child {data['name']} {state}" + (f": {', '.join(parts)}" if parts else "")


def _called(data: Data) -> str:
    names = [f"{call['name']} ({call['id']})" for call in data["calls"]]
    more = f" and {counted(data['more'], 'other call')}" if data.get("more") else ""
    return f"{data['message']} called {', '.join(names)}{more}"


def _returned(data: Data) -> str:
    call = " ".join(filter(None, (data.get("name"), f"({data['call']})" if data.get("call") else "")))
    facts = [str(data["outcome"])]
    facts += [f"exit code {data['exit']}"] if "exit" in data else []
    facts += [str(data["error"])] if "error" in data else []
    facts += [f"{data['duration_ms'] / 1000:,.1f} s"] if "duration_ms" in data else []
    return f"{data['message']} is the result of {call or 'a call'}: {', '.join(facts)}"


def _provider_error(data: Data) -> str:
    status = f" (status {data['status']})" if "status" in data else ""
    if "message" in data:
        return f"reply {data['message']} broke off: {data['error']}{status}"
    return f"a call of the provider failed: {data['error']}{status}"


def _overflow(data: Data) -> str:
    turn = f"turn {data['turn']}" if "turn" in data else "a turn"
    ending = f"compacted as {data['compaction']}" if "compaction" in data else f"not compacted: {data['problem']}"
    return f"the provider refused {turn} as too long; {ending}"


def _erased(data: Data) -> str:
    places = [_numbered(noun, data[f"{noun}s"]) for noun in ("message", "event") if f"{noun}s" in data]
    lost = ""
    if turns := data.get("turns"):
        lost = f"; {_numbered('turn', turns)} no longer {'verifies' if turns.isdecimal() else 'verify'}"
    return f"erased a {data['kind']} from {', '.join(places) or 'derived files'}, now {data['marker']}{lost}"


def _numbered(noun: str, numbers: str) -> str:
    """Return numbers with their noun: message 3, messages 3,7-9."""
    return f"{noun} {numbers}" if numbers.isdecimal() else f"{noun}s {numbers}"


def _gc_policy(data: Data) -> str:
    text = "; ".join(str(data["text"]).split("\n")).strip("; ") if "text" in data else counted(data["bytes"], "byte")
    return f"policy of garbage collection: {text}"


def _gc_applied(data: Data) -> str:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in data["removed"].items())
    files = counted(sum(data["removed"].values()), "derived file")
    return f"removed {files} ({kinds}), {counted(data['bytes'], 'byte')}"


def _injected(data: Data) -> str:
    items = f": {', '.join(data['items'])}" if data["items"] else ""
    return f"injected {counted(data['chars'], 'character')} at {data['event']}{items}"


def _swapped_out(data: Data) -> str:
    return f"swapped out an output of {data['tool']} ({counted(data['tokens'], 'token')})"


def _import_begun(data: Data) -> str:
    return f"import of {data['path']} ({data['format']}) began"


def _import_row(data: Data) -> str:
    if problem := data.get("problem"):
        return f"line {data['line']:,} of the transcript: {problem}"
    return f"kept line {data['line']:,} of the transcript, which is not a message: {_kind(data.get('row'))}"


def _kind(row: object) -> str:
    """Return the type of a row of another agent, with that of its payload."""
    if not isinstance(row, dict):
        return "a row without a type"
    fields = cast(dict[str, object], row)
    kind = fields.get("type") or fields.get("record_type") or fields.get("kind") or "a row without a type"
    payload = fields.get("payload")
    inner = cast(dict[str, object], payload).get("type") if isinstance(payload, dict) else None
    return f"{kind}, {inner}" if inner else f"{kind}"


def _import_file(data: Data) -> str:
    return f"captured the file {data['file']} of the transcript"


def _branched(data: Data) -> str:
    return f"the agent went back in {data['session']}, and continues here"


def _continued(data: Data) -> str:
    return f"the agent gave {data['session']} this name; its messages are there"


def _kept(data: Data) -> str:
    return f"the agent replaced its messages by a pack, {len(data['messages'])} of them in another form"


def _rolled_back(data: Data) -> str:
    return f"{_messages(data['messages'])} were rolled back by {data['format']}"


def _compacted_there(data: Data) -> str:
    sizes = [f"{data[name]:,}" for name in ("before_tokens", "after_tokens") if isinstance(data.get(name), int)]
    shrunk = f" ({' → '.join(sizes)} tokens)" if len(sizes) == 2 else ""
    kept = f", {counted(len(data['kept']), 'message')} kept" if data["kept"] else ""
    return f"{data['format']} compacted its window up to message {data['through']:,}{shrunk}{kept}"


def _import_progress(data: Data) -> str:
    messages = counted(data["totals"]["messages"], "message")
    return f"imported {data['path']} up to line {data['lines']:,}: {messages}"


def _bound(data: Data) -> str:
    memory = data["memory"]
    return f"bound to the memory {memory['memory_id']}" if memory else "no longer bound to a memory"


def _confirmed(data: Data) -> str:
    return f"confirmed {data['id']}"


def _messages(source: str) -> str:
    """Return words for a range such as messages:1-210."""
    return _numbered("message", source.removeprefix("messages:"))


def _span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}-{last}"


def _text(words: str) -> str:
    return " ".join(words.split())


WORDS: dict[str, Callable[[Data], str]] = {
    "pin.removed": _pin_removed,
    "session.state": _state,
    "log.torn": _torn,
    "context.turn": _turn,
    "context.observed": _observed,
    "context.usage": _usage,
    "context.snapshot": _snapshot,
    "context.compaction.completed": _compacted,
    "context.compaction.undone": _undone,
    "context.compaction.failed": _compaction_failed,
    "context.budget": _budget,
    "context.switch": _switch,
    "rules.found": _rules_found,
    "rule.added": _rule_added,
    "rule.dropped": _rule_dropped,
    "rule.pinned": _rule_pinned,
    "context.missing.requested": _asked,
    "context.missing.detected": _detected,
    "context.missing.resolved": _answered,
    "context.exported": _exported,
    "context.imported": _imported,
    "child.updated": _child,
    "tool.called": _called,
    "tool.returned": _returned,
    "provider.error": _provider_error,
    "provider.overflow": _overflow,
    "history.erased": _erased,
    "gc.policy": _gc_policy,
    "gc.applied": _gc_applied,
    "hook.injected": _injected,
    "hook.swapped": _swapped_out,
    "host.branched": _branched,
    "host.continued": _continued,
    "host.kept": _kept,
    "import.begun": _import_begun,
    "import.row": _import_row,
    "import.file": _import_file,
    "import.rolled_back": _rolled_back,
    "import.compacted": _compacted_there,
    "import.progress": _import_progress,
    "memory.bound": _bound,
    "fact.confirmed": _confirmed,
}
