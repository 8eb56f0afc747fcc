"""Effects of shell commands: files read and written, tests run, addresses fetched."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from daypack.derived.artifacts.patches import BEGIN, Touch, read_patch
from daypack.derived.artifacts.shell import Simple, word_set
from daypack.derived.artifacts.test_runners import Test, find_test
from daypack.derived.artifacts.tool_arguments import Verb

_READERS = word_set(
    "cat bat batcat less more head tail nl wc tac xxd od hexdump strings file stat source . sort uniq cut column "
    "md5sum sha1sum sha256sum shasum diff cmp comm paste view zcat"
)
# Their first operand is a program or a pattern.
_PATTERN_READERS = word_set("grep egrep fgrep rg ag ack awk gawk jq yq sed perl")
_LISTERS = word_set("ls tree find fd du")
_WRITERS: dict[str, Verb] = {"tee": "written", "truncate": "written", "touch": "created", "mkdir": "created"}
_DELETERS = frozenset(("rm", "unlink", "rmdir", "shred"))
_SILENT = word_set(
    "cd echo printf export set source . true false sleep pwd pushd popd ulimit unset shopt trap exit wait "
    "tail head grep tee sort uniq wc cut less more"
)
# Options that take the next word.
_WITH_VALUE = {
    "head": ("-n", "-c"),
    "tail": ("-n", "-c"),
    "grep": ("-e", "-f", "-m", "-A", "-B", "-C", "--include", "--exclude", "--exclude-dir"),
    "rg": ("-e", "-f", "-m", "-A", "-B", "-C", "-g", "-t", "-T", "--glob", "--type", "--max-count"),
    "sed": ("-e", "-f"),
    "jq": ("--arg", "--argjson"),
    "find": ("-name", "-iname", "-path", "-type", "-maxdepth", "-mindepth", "-mtime", "-size", "-newer", "-exec"),
    "tree": ("-L", "-I", "-P"),
    "touch": ("-d", "-r", "-t"),
    "truncate": ("-s", "-r"),
    "mkdir": ("-m",),
    "cut": ("-d", "-f", "-c"),
    "sort": ("-k", "-t", "-o"),
    "awk": ("-F", "-v", "-f"),
}
_LINES = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?p")
_COUNT = re.compile(r"-(?:n ?)?(\d{1,9})")
_UNREAL = re.compile(r"[$*?`\[{<>|;\n\x00]|^(?:-|&?\d*|/dev/.*)$|^[a-z]+://")
_URL = re.compile(r"(?:https?|ftp|git|ssh)://[^\s'\"<>`|;)]+")
_FETCHERS = frozenset(("curl", "wget", "git", "lynx", "http", "xh", "aria2c"))
# Their first word says what is done: `git push -u origin x` does what `git push` did not.
_BY_VERB = frozenset(("git", "gh", "docker", "kubectl", "terraform"))
_KEY_WORDS, _KEY_CHARS = 6, 120


class Done(NamedTuple):
    """The effects of a script, as far as they can be read."""

    touches: tuple[Touch, ...] = ()
    tests: tuple[Test, ...] = ()
    urls: tuple[str, ...] = ()
    does: tuple[str, ...] = ()  # for comparison with other scripts; the last is what it was run for
    programs: tuple[str, ...] = ()
    piped: bool = False  # the exit code is that of a filter


def read_commands(simples: Sequence[Simple]) -> Done:
    """Return what the commands of a script do together."""
    touches: list[Touch] = []
    tests: list[Test] = []
    urls: list[str] = []
    does: list[str] = []
    for simple in simples:
        touches += _touches(simple)
        if not simple.words:
            continue
        if test := find_test(simple.words):
            tests.append(test)
        if program_of(simple.words) in _FETCHERS:
            urls += [url for word in simple.words if "://" in word for url in _URL.findall(word)]
        if not simple.fed and (key := _key(simple.words)) and key not in does:
            does.append(key)
    programs = tuple(program_of(command.words) for command in simples if command.words)
    return Done(
        tuple(touches), tuple(tests), tuple(urls), tuple(does), programs, any(command.piped for command in simples)
    )


def program_of(words: Sequence[str]) -> str:
    """Return the name of the program a command starts."""
    return words[0].rpartition("/")[2] if words else ""


def _key(words: Sequence[str]) -> str:
    """Name what a command runs without its options: what succeeds later under the same name is the same work."""
    program = program_of(words)
    if program in _SILENT:
        return ""
    operands = [word for word in words[1:] if not word.startswith("-")]
    most = 1 if program in _BY_VERB else _KEY_WORDS
    return " ".join(" ".join((program, *operands[:most])).split())[:_KEY_CHARS]


def _touches(simple: Simple) -> Iterator[Touch]:
    words = simple.words
    body = simple.heredocs[0] if simple.heredocs else None
    written = [redirect for redirect in simple.redirects if redirect.operator in (">", ">>", ">|", "&>", "&>>")]
    program = program_of(words)
    whole = body.body if body and body.literal and program == "cat" and len(words) == 1 else None
    for target in written:
        if is_path(target.target):
            yield Touch("written", target.target, whole if target.operator == ">" else None)
    for redirect in simple.redirects:
        if redirect.operator == "<" and is_path(redirect.target):
            yield Touch("read", redirect.target)
    if words:
        whole = body.body if body and body.literal and program == "tee" and len(words) == 2 else None
        yield from _by_program(program, words[1:], whole)
        texts = [*words[1:], *(heredoc.body for heredoc in simple.heredocs)]
        for text in texts:
            if BEGIN in text or ("+++ " in text and program in ("patch", "git")):
                yield from read_patch(text)


def _by_program(program: str, words: tuple[str, ...], content: str | None) -> Iterator[Touch]:
    if program == "git" and words:
        yield from _git(words)
    elif read := _SPECIAL.get(program):
        yield from read(words)
    elif program in _DELETERS:
        yield from _each("deleted", _operands(program, words))
    elif verb := _WRITERS.get(program):
        for path in _operands(program, words):
            yield Touch(verb, path, content)
    elif program in _READERS:
        yield from _each("read", _operands(program, words))
    elif program in _PATTERN_READERS:
        yield from _each("read", _after_pattern(program, words))
    elif program in _LISTERS:
        yield from _each("listed", _operands(program, words))


def _each(verb: Verb, paths: Sequence[str]) -> Iterator[Touch]:
    for path in paths:
        yield Touch(verb, path)


def _operands(program: str, words: Sequence[str]) -> list[str]:
    """Return the words that are paths: no options and none of their values."""
    valued = _WITH_VALUE.get(program, ())
    operands: list[str] = []
    skip, plain = False, False
    for word in words:
        if skip:
            skip = False
        elif word == "--":
            plain = True
        elif word.startswith("-") and not plain:
            skip = word in valued
        elif is_path(word):
            operands.append(word)
    return operands


def _after_pattern(program: str, words: Sequence[str]) -> list[str]:
    given = any(word in ("-e", "-f", "--regexp") for word in words)
    valued = _WITH_VALUE.get("grep" if program.endswith("grep") else program, ())
    rest: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = word in valued
        else:
            rest.append(word)
    return [word for word in (rest if given else rest[1:]) if is_path(word)]


def _sed(words: tuple[str, ...]) -> Iterator[Touch]:
    paths = _after_pattern("sed", words)
    if any(word.startswith("-i") or word == "--in-place" for word in words):
        yield from _each("written", paths)
        return
    lines = next((found for word in words if (found := _LINES.fullmatch(word))), None)
    start = int(lines[1]) if lines else 0
    for path in paths:
        yield Touch("read", path, start=start, stop=int(lines[2] or start) if lines else 0)


def _head(words: tuple[str, ...]) -> Iterator[Touch]:
    found = _COUNT.match(" ".join(words))
    for path in _operands("head", words):
        yield Touch("read", path, start=1 if found else 0, stop=int(found[1]) if found else 0)


def _two(words: tuple[str, ...], source: Verb) -> Iterator[Touch]:
    paths = _operands("mv", words)
    if len(paths) >= 2:
        yield from _each(source, paths[:-1])
        yield Touch("created", paths[-1])


def _git(words: tuple[str, ...]) -> Iterator[Touch]:
    verb, rest = words[0], words[1:]
    if verb == "mv":
        yield from _two(rest, "deleted")
    elif verb == "rm":
        yield from _each("deleted", _operands("git", rest))
    elif verb == "restore" or (verb == "checkout" and "--" in rest):
        after = rest[rest.index("--") + 1 :] if "--" in rest else rest
        yield from _each("written", [word for word in _operands("git", after) if word != "."])


def _download(words: tuple[str, ...]) -> Iterator[Touch]:
    for option, path in pairwise(words):
        if option in ("-o", "-O", "--output", "--output-document") and is_path(path):
            yield Touch("written", path)


_SPECIAL: dict[str, Callable[[tuple[str, ...]], Iterator[Touch]]] = {
    "sed": _sed,
    "head": _head,
    "mv": lambda words: _two(words, "deleted"),
    "cp": lambda words: _two(words, "read"),
    "curl": _download,
    "wget": _download,
}


def is_path(word: str) -> bool:
    """Return True if a word can be the path of one file: no variable, no pattern, no number."""
    return 0 < len(word) <= 4096 and not _UNREAL.search(word)
