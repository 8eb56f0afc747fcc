"""What each rule of the protocol demands, as one sentence: messages show it beside the rule's id."""

from collections.abc import Iterable

RULES: dict[str, str] = {
    "S0-R1": "a reply ends with a <<<CONTEXT>>> section",
    "S0-R2": "the section is the last thing in a reply",
    "S0-R3": "the separator occurs once",
    "S0-R4": "well-formed JSON follows the separator",
    "S0-R5": "a standard JSON parser reads the snapshot without cleaning it first",
    "S0-R6": "only white space surrounds the JSON object",
    "S0-R7": "a snapshot consists of typed fields, not of prose",
    "S0-R8.1": "version comes back as it was sent",
    "S0-R8.2": "runtime.round comes back as it was sent",
    "S0-R8.3": "runtime.workspace comes back as it was sent",
    "S0-R8.4": "runtime.datetime comes back as it was sent",
    "S0-R8.5": "runtime.startup_at comes back as it was sent",
    "S0-R9": "blocks are under memory.core, memory.working or memory.ephemeral",
    "S0-R10": "a block has id, type, decay, confidence, round, tags and content",
    "S0-R10.1": "a block has an id",
    "S0-R10.2": "a block has a type",
    "S0-R10.3": "a block has a decay",
    "S0-R10.4": "a block has a confidence",
    "S0-R10.5": "a block has a round, and not a later one than the present",
    "S0-R10.6": "a block has tags, an array of texts",
    "S0-R10.7": "a block has content",
    "S0-R11": "decay is a number from 0 to 1",
    "S0-R12": "confidence is a number from 0 to 1",
    "S0-R13": "blocks of low quality are left out",
    "S0-R14": "a block that changes keeps its id, and no two blocks share one",
    "S0-R15": "a tier lists its best blocks first and repeats nothing",
    "S0-F1": "a reply is text, then the separator, then one JSON object",
    "S0-F2": "no Markdown fence surrounds the snapshot",
    "S0-F3": "no XML tag surrounds the snapshot",
    "S0-F4": "the JSON has no comments",
    "S0-T2": "version is a number",
    "S0-T7": "memory is an object with the arrays core, working and ephemeral",
    "S0-T11": "capabilities is an array of objects with name and scope",
    "S0-T12": "active_task is text",
    "S0-T13": "a reply is UTF-8",
}


def describe_rules(rules: Iterable[str]) -> str:
    """Return rules with their sentences on one line, each once: S0-R1 (a reply ends with …), S0-R4 (…)."""
    found = dict.fromkeys(rules)
    return ", ".join(f"{rule} ({RULES[rule]})" if rule in RULES else rule for rule in found)
