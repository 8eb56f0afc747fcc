"""The files of the page: its modules as one script, the style, and the shell that loads them.

The modules are joined without a build step, so each keeps to a few rules, which are checked here:
an import is one line `import { a, b } from "./x.js";`, `export` only precedes a declaration at the beginning of a line,
and no two modules declare the same name. Vendored modules are used as they are, each within a function of its own.
"""

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from gzip import compress
from hashlib import sha256
from typing import NamedTuple

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "web")
ASSETS = "/page/assets/"
ENTRY, STYLE, SHELL = "page.js", "page.css", "page.html"
_VENDOR = "vendor/"
_SCRIPT_TAG = '<script type="module" src="page.js"></script>'
_STYLE_TAG = '<link rel="stylesheet" href="page.css">'

_IMPORT = re.compile(r'import \{ ([\w$]+(?:, [\w$]+)*) \} from "\./([\w/.-]+\.js)";')
_DECLARED = re.compile(r"(?:export )?(?:async )?(?:const|let|var|function\*?|class) ([\w$]+)")
_EXPORT = re.compile(r"export (?=(?:const|let|function\*?|class|async function) ?[\w$])")
_VENDOR_EXPORT = re.compile(r"export\s*\{([^{}]*)\};?\s*$")


class BrokenModule(ValueError):
    """A module of the page that breaks a rule of joining."""


class Asset(NamedTuple):
    """A file that browsers may keep for ever: its name has its hash."""

    media_type: str
    data: bytes
    packed: bytes


class Bundle(NamedTuple):
    """The page as three texts; `modules` are the names in the order they were joined."""

    shell: str
    script: str
    style: str
    modules: tuple[str, ...]


class Assets(NamedTuple):
    """The shell of the server, and the assets it names."""

    shell: bytes
    files: Mapping[str, Asset]


@cache
def bundle() -> Bundle:
    """Return the page, read once; BrokenModule if a module breaks a rule."""
    modules = _read_modules()
    shell = _read(SHELL)
    for tag in (_SCRIPT_TAG, _STYLE_TAG):
        if shell.count(tag) != 1:
            raise BrokenModule(f"{SHELL}: must have {tag} once")
    return Bundle(shell, join(modules), _read(STYLE), tuple(order(modules)))


@cache
def assets() -> Assets:
    """Return what the server sends."""
    page = bundle()
    files: dict[str, Asset] = {}
    paths: list[str] = []
    for name, media_type, text in (
        (ENTRY, "text/javascript", page.script),
        (STYLE, "text/css", page.style),
    ):
        data = text.encode()
        stem, _, extension = name.partition(".")
        hashed = f"{stem}-{sha256(data).hexdigest()[:16]}.{extension}"
        files[hashed] = Asset(f"{media_type}; charset=utf-8", data, compress(data, 9, mtime=0))
        paths.append(ASSETS + hashed)
    script_tag = _SCRIPT_TAG.replace(ENTRY, paths[0])
    style_tag = _STYLE_TAG.replace(STYLE, paths[1])
    return Assets(page.shell.replace(_SCRIPT_TAG, script_tag).replace(_STYLE_TAG, style_tag).encode(), files)


def standalone(data: str, title: str) -> str:
    """Return the page as one file that loads nothing: script, style and `data`, which must be base64, inside."""
    page = bundle()
    for name, text in ((ENTRY, page.script), (STYLE, page.style)):
        if re.search(r"</(?:script|style)|<!--", text, re.IGNORECASE):
            raise BrokenModule(f"{name}: has a tag or comment that would end it within HTML")
    policy = (
        f"default-src 'none'; script-src '{_source(page.script)}'; style-src '{_source(page.style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    head = f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">'
    shown = title.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    scripts = (
        f'<script type="application/json" id="daypack-export">{data}</script>\n'
        f'<script type="module">{page.script}</script>'
    )
    return (
        page.shell.replace('<meta charset="utf-8">', head, 1)
        .replace("<title>daypack</title>", f"<title>{shown}</title>", 1)
        .replace(_STYLE_TAG, f"<style>{page.style}</style>", 1)
        .replace(_SCRIPT_TAG, scripts, 1)
        + _licences()
    )


def _licences() -> str:
    """Return the licences of vendored code as a comment: a file that is passed on has to contain them."""
    names = sorted(name for name in os.listdir(os.path.join(FOLDER, _VENDOR)) if name.startswith("LICENSE"))
    texts = [f"{name.partition('.')[2]}\n\n{_read(_VENDOR + name).strip()}" for name in names]
    joined = "\n\n".join(texts).replace("--", "- -")
    return f"<!-- This file contains the following programs.\n\n{joined}\n-->\n"


def join(modules: Mapping[str, str]) -> str:
    """Return modules as one script."""
    wanted = {name: set[str]() for name in modules}
    for text in modules.values():
        for names, source in _IMPORT.findall(text):
            if source in wanted:
                wanted[source].update(names.split(", "))
    _check_names(modules, wanted)
    return "\n".join(
        _inclosed(name, modules[name], wanted[name]) if name.startswith(_VENDOR) else _stripped(name, modules[name])
        for name in order(modules)
    )


def order(modules: Mapping[str, str]) -> list[str]:
    """Return the names of modules, each after those it imports."""
    ordered: list[str] = []
    entered: list[str] = []

    def add(name: str, by: str) -> None:
        if name not in modules:
            raise BrokenModule(f"{by}: imports {name}, which does not exist")
        if name in entered:
            return
        entered.append(name)
        for _, source in _IMPORT.findall(modules[name]):
            add(source, name)
        ordered.append(name)

    for name in sorted(modules, key=lambda each: (each == ENTRY, each)):
        add(name, "")
    return ordered


def _stripped(name: str, text: str) -> str:
    """Return a module of ours without its imports and the word `export`."""
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*import\b", line):
            if not _IMPORT.fullmatch(line):
                raise BrokenModule(f'{name}:{number}: an import must be one line: import {{ a, b }} from "./x.js";')
            continue
        if re.match(r"\s*export\b", line) and not _EXPORT.match(line):
            raise BrokenModule(f"{name}:{number}: export must directly precede const, let, function or class")
        lines.append(_EXPORT.sub("", line, count=1))
    return f"// {name}\n" + "\n".join(lines)


def _inclosed(name: str, text: str, wanted: set[str]) -> str:
    """Return a vendored module as a function that returns what others import of it."""
    found = _VENDOR_EXPORT.search(text)
    if found is None:
        raise BrokenModule(f"{name}: must end with export {{ … }}")
    exported: dict[str, str] = {}
    for pair in found[1].split(","):
        inner, _, outer = pair.strip().partition(" as ")
        exported[outer or inner] = inner
    if missing := wanted - exported.keys():
        raise BrokenModule(f"{name}: does not export {', '.join(sorted(missing))}")
    names = ", ".join(sorted(wanted))
    fields = ", ".join(f"{outer}: {exported[outer]}" for outer in sorted(wanted))
    return f"// {name}\nconst {{ {names} }} = (() => {{\n{text[: found.start()]}\nreturn {{ {fields} }};\n}})();"


def _check_names(modules: Mapping[str, str], wanted: Mapping[str, set[str]]) -> None:
    """Raise BrokenModule if two modules declare one name, or if one imports what the other does not export."""
    owners: dict[str, str] = {}
    for name, text in modules.items():
        if name.startswith(_VENDOR):
            declared = wanted[name]
        else:
            declared = {found[1] for line in text.splitlines() if (found := _DECLARED.match(line))}
            exported = {
                found[1] for line in text.splitlines() if _EXPORT.match(line) and (found := _DECLARED.match(line))
            }
            if missing := wanted[name] - exported:
                raise BrokenModule(f"{name}: does not export {', '.join(sorted(missing))}")
        for each in sorted(declared):
            if each in owners:
                raise BrokenModule(f"{each} is declared by both {owners[each]} and {name}")
            owners[each] = name


def _read_modules() -> dict[str, str]:
    names = [name for name in os.listdir(FOLDER) if name.endswith(".js")]
    vendored = [_VENDOR + name for name in os.listdir(os.path.join(FOLDER, _VENDOR)) if name.endswith(".js")]
    return {name: _read(name) for name in (*sorted(names), *sorted(vendored))}


def _read(name: str) -> str:
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def _source(text: str) -> str:
    """Return the source expression of CSP for an inline text."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
