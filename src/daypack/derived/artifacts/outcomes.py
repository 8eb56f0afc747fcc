"""Outcomes of tool calls: exit code, success or failure, and the line that describes the error."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

from daypack.derived.artifacts.shell import word_set
from daypack.text.trim import trim

ERROR_CHARS = 200
_FEW_LINES = 8
_HEAD_CHARS, _TAIL_CHARS = 4000, 8000  # of an output in which an error is looked for
_BENIGN = word_set("grep egrep fgrep rg ag ack diff cmp test [ which pgrep command type")
_SHOWS = word_set("cat bat grep egrep fgrep rg sed awk head tail less more nl git gh jq journalctl docker kubectl")

_EXIT_HEAD = re.compile(
    r"\s{0,8}(?:Error: )?(?:(?:Chunk ID|Wall time|Command|Session)[^\n]{0,200}\n){0,4}"
    r"(?:Exit code:?|Exit Code:|Process exited with code|Command failed with exit code|Command exited with code"
    r"|<returncode>|returncode:|[Ee]xit status:?|exit code:?) ?(-?\d{1,9})\b"
)
_FRAMED = ("Exit code", "Exit status", "exit code", "Chunk ID", "Wall time", "Process exited")
_EXIT_TAIL = re.compile(
    r"(?:\[(?:The c|C)ommand (?:finished|completed) with exit code|\bExit Code:|exit_code\"?[:=]|</output>\n<exit_code>"
    r"|^[Ee]xit status:?) ?(-?\d{1,9})",
    re.MULTILINE,
)
# Of a tool whose text is its own, wherever it says it.
_EXIT_ANYWHERE = re.compile(
    r"\b(?:exit|exited with|finished with|failed with)(?: code| status)[:=]? {0,4}(-?\d{1,9})\b", re.IGNORECASE
)
# What no tool prints that succeeded.
_UNMISTAKABLE = re.compile(
    r"^FAILED \S+::\S|^Traceback \(most recent call last\)|^(?:error|Error|ERROR): ?\S", re.MULTILINE
)
_SHORT_CHARS = 2000  # of an output that is about its error
_CANCELLED = (
    "The user doesn't want to proceed with this tool use",
    "<tool_use_error>Sibling tool call errored",
    "<tool_use_error>Cancelled",
    "[Request interrupted by user",
    "The user rejected",
    "User rejected",
    "aborted by user",
    "exec command rejected by user",
    "Tool execution was cancelled",
)
_RUNNING = ("Command running in background", "Process running with session ID")
_REFUSED = (
    "<tool_use_error>",
    "Error:",
    "ERROR:",
    "error:",
    "Error executing",
    "Error calling",
    "Failed to",
    '{"error":"',
    '{"error": "',
    '{"isError":true',
    '{"isError": true',
    "Access denied",
    "Invalid tool",
    "Unknown tool",
    "MCP error",
    "apply_patch verification failed",
    "Invalid patch",
    "failed to parse",
    "File does not exist",
    "File not found",
    "No such file",
    "Permission denied",
    "String to replace not found",
    "No replacement was performed",
    "No edit was performed",
    "Text not found",
    "Your proposed edit has introduced new syntax error",
)
_SIGNS = (
    "Traceback (most recent call last)",
    "command not found",
    ": No such file or directory",
    "\nfatal: ",
    "\npanic: ",
    "error[E",
    "SyntaxError: ",
    "Segmentation fault",
)
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,16}[A-Za-z]")
# From the most informative kind of line to the least.
_LINES = (
    re.compile(
        r"^FAILED \S.*$|^E   +\w.*$|^--- FAIL: .*$|^ +\d{1,4}\) test .*$|^test \S+ \.\.\. FAILED$", re.MULTILINE
    ),
    re.compile(r"^(?:\*\* \()?[A-Za-z_][\w.]*(?:Error|Exception|Panic|Interrupt|Exit)\b.*$", re.MULTILINE),
    # A compiler or linter: path, line, column, message.
    re.compile(
        r"^(?:\[[\w:.-]{1,40}\] ?)?[\w./\\-]{1,200}\.\w{1,5}:\d{1,7}(?::\d{1,5})?: ?(?!warning|note)\w.*$", re.MULTILINE
    ),
    re.compile(r"^\s*(?:error|fatal|panic|ERROR|Error|FATAL|E)(?:\[\w+\])?: ?\S.*$", re.MULTILINE),
    re.compile(
        r"^.*(?:\berror\b|\bError\b|not found|No such file|[Pp]ermission denied|cannot |can't |failed|invalid).*$",
        re.MULTILINE,
    ),
)
_WORDS = re.compile(r"[^\W\d_]{2,}")
_MARKUP = re.compile(r"</?(?:tool_use_error|error|returncode|output)>")
_VAGUE = re.compile(
    r"(?:error: ?)?(?:file (?:does not exist|not found)|no such file or directory|permission denied|access denied|"
    r"(?:an? )?(?:unknown |internal |unexpected )?(?:error|failure)(?: has)?(?: occurred)?|"
    r"(?:command |tool |build |tests? )?fail(?:ed|ure)|invalid (?:input|arguments?|request)|not found|"
    r"something went wrong|your proposed edit has introduced new syntax error.*)[.!:]*",
    re.IGNORECASE,
)
# "[lint] ERROR task failed", a path or a package alone: the line says that something failed, not what.
_EMPTY = re.compile(
    r"(?:\[[\w:./-]+\]\s*)?(?:\w+ )?(?:ERROR|Error|error)?:? ?(?:task|job|step|recipe|target|script)s? (?:\S+ )?"
    r"(?:failed|exited)\b.*|"
    r"(?:\[[\w:./-]+\]\s*)?[\w./@-]*[/.][\w./@-]*"
)
_INFORMATIVE_WORDS = 4
_LOOK_AHEAD = 40  # lines
_FRAME = re.compile(
    r"(?:Exit (?:code|status)|exit (?:code|status)|Process exited with code|Command exited with code):? ?-?\d+|"
    r"(?:Wall time|Chunk ID|Original token count|Process exited|Output):?.*|\$ .*|hint: .*"
)


class Outcome(NamedTuple):
    """The outcome of a call."""

    text: str  # of the output, without its wrapping
    exit: int | None = None
    failed: bool | None = None  # None: unknown
    cancelled: bool = False  # it was not tried, or it was stopped
    running: bool = False  # it still runs in the background


def read_outcome(text: str, meta: Mapping[str, Any] | None, *, shell: bool, speaks: bool = False) -> Outcome:
    """Read the outcome from a result; `speaks`: the text is the tool's own, not the content of a file or page."""
    flagged = _failure_flag(meta)
    if text.startswith(_CANCELLED):
        return Outcome(text, failed=True, cancelled=True)
    if text.startswith("{"):
        text, code = _unwrap(text)
        if code is not None:
            return Outcome(text, code, code != 0)
    if not shell:
        code = exit_code(text) if text.startswith(_FRAMED) else None
        if speaks and flagged is None and code is None:
            code = _mentioned_exit_code(text)
        if flagged is None:
            # What is long is the text of a file or a page, whatever it begins with.
            flagged = (
                code != 0 if code is not None else len(text) < _HEAD_CHARS and text.lstrip()[:64].startswith(_REFUSED)
            ) or (speaks and not code and _is_unmistakable(text))
        return Outcome(text, code, flagged)
    if text.startswith(_RUNNING) or "Process running with session ID" in text[:400]:
        return Outcome(text, running=True)
    code = exit_code(text)
    if code is None and flagged is False:
        code = 0  # Claude Code names the code only when it is not 0
    if code is None and text.startswith("Your command ran successfully"):
        code = 0
    failed = code != 0 if code is not None else flagged
    return Outcome(text, code, failed)


def exit_code(text: str) -> int | None:
    """Return the exit code that an output begins or ends with."""
    found = _EXIT_HEAD.match(text[:700])
    if not found:
        every = _EXIT_TAIL.findall(text[-300:])
        return int(every[-1]) if every else None
    return int(found[1])


def is_benign(programs: tuple[str, ...], code: int | None) -> bool:
    """Return True if an exit code is an answer (nothing found, files differ) and no error."""
    return code == 1 and bool(programs) and programs[-1] in _BENIGN


def shows_failure(text: str, programs: tuple[str, ...]) -> bool:
    """Return True if an output without a clear exit code shows that its command failed."""
    if programs and programs[0] in _SHOWS:
        return False  # the errors it prints are not its own
    ends = text if len(text) <= _HEAD_CHARS + _TAIL_CHARS else f"{text[:_HEAD_CHARS]}\n{text[-_TAIL_CHARS:]}"
    return any(sign in ends for sign in _SIGNS) or ends.startswith(("fatal: ", "panic: "))


def error_line(text: str) -> str:
    """Return the line of an output that describes the error best, unchanged."""
    ends = text if len(text) <= _HEAD_CHARS + _TAIL_CHARS else f"{text[:_HEAD_CHARS]}\n{text[-_TAIL_CHARS:]}"
    ends = _ANSI.sub("", ends)
    for at, pattern in enumerate(_LINES):
        found = pattern.findall(ends)
        if found:
            # A traceback ends with its error; lists of failures begin with the first cause.
            return _informative_line(found[-1] if at == 1 and "Traceback" in ends else found[0], ends)
    lines = [line for raw in ends.split("\n") if (line := raw.strip()) and not _FRAME.fullmatch(line)]
    # A few lines begin with what is wrong, a long output ends with it.
    return _informative_line(lines[0 if len(lines) <= _FEW_LINES else -1], ends) if lines else one_line(ends)


def names_problem(line: str) -> bool:
    """Return True if a line names the problem: not "failed" alone, and not a lead-in to other lines."""
    return bool(line) and not line.endswith((":", "：")) and not (_VAGUE.fullmatch(line) or _EMPTY.fullmatch(line))


def _informative_line(line: str, output: str) -> str:
    """Return a line of an output, or the next informative line if this one names no problem."""
    own = one_line(_first_of(line))
    if names_problem(own):
        return own
    _, _, rest = output.partition(line)
    after = [*line.split("\\n")[1:], *rest.split("\n")[:_LOOK_AHEAD]]
    next_lines = [
        words
        for following in after
        if (words := one_line(following).removeprefix("- ")) and not _FRAME.fullmatch(words)
    ]
    for at, words in enumerate(next_lines):
        if names_problem(words) and _is_informative(words, first=at == 0):
            return words
    return own


def _is_informative(line: str, *, first: bool) -> bool:
    """Return True if a line is clear by itself: worded as an error, or the next line with a few words."""
    if line.startswith(("[", "{", "---", "Please ")):
        return False
    if "Error: " in line or "Exception: " in line or any(pattern.match(line) for pattern in _LINES):
        return True
    return first and len(_WORDS.findall(line)) >= _INFORMATIVE_WORDS


def _mentioned_exit_code(text: str) -> int | None:
    every = _EXIT_ANYWHERE.findall(text if len(text) <= _SHORT_CHARS else text[-300:])
    return int(every[-1]) if every else None


def _is_unmistakable(text: str) -> bool:
    found = _UNMISTAKABLE.search(text if len(text) <= _HEAD_CHARS + _TAIL_CHARS else text[-_TAIL_CHARS:])
    if not found:
        return False
    return found[0].lower()[:5] != "error" or len(text) <= _SHORT_CHARS


def _first_of(line: str) -> str:
    """Return a line up to a line end that is spelled out in it: what follows is other lines, quoted."""
    return line.partition("\\n")[0] or line


def one_line(text: str, most: int = ERROR_CHARS) -> str:
    """Return text on one line, without markup and colours, cut to a length, fit for UTF-8."""
    text = _MARKUP.sub("", _ANSI.sub("", text[: most * 8]))
    words = " ".join(text.split())
    if not words.isascii():
        words = words.encode("utf-8", "replace").decode()
    return trim(words, most)


def _failure_flag(meta: Mapping[str, Any] | None) -> bool | None:
    """Return True if the agent's own log marks a result as an error; None if it has no mark."""
    if not meta:
        return None
    result = meta.get("result")
    if isinstance(result, dict):
        said = cast(dict[str, Any], result).get("is_error")
        if isinstance(said, bool):
            return said
    for name in ("is_error", "isError", "error"):
        if isinstance(said := meta.get(name), bool):
            return said
    success = meta.get("success")
    if isinstance(success, bool):
        return not success
    return False if meta.get("format") == "claude-code" else None


def _unwrap(text: str) -> tuple[str, int | None]:
    """Return the output and exit code inside a JSON object, the way Codex and many tools wrap them."""
    head = text[:200]
    if '"output"' not in head and '"metadata"' not in head and '"stdout"' not in head and '"exit' not in head:
        return text, None
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text, None
    fields = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    inner = fields.get("metadata")
    merged = {**fields, **(cast(dict[str, Any], inner) if isinstance(inner, dict) else {})}
    code = next((merged[name] for name in ("exit_code", "exitCode", "exit", "returncode") if name in merged), None)
    outputs = [merged.get(name) for name in ("output", "stdout", "stderr")]
    words = "\n".join(output for output in outputs if isinstance(output, str) and output)
    return words or text, code if isinstance(code, int) and not isinstance(code, bool) else None
