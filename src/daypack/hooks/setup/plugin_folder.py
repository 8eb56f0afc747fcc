"""The plug-in folder as it is installed: the shipped files, with commands that find this very program.

<home>/plugin/.claude-plugin/marketplace.json
<home>/plugin/opencode/daypack.js
<home>/plugin/daypack/{.claude-plugin/plugin.json, hooks/hooks.json, skills/daypack/SKILL.md, qwen-extension.json}
<home>/plugin/gemini/{gemini-extension.json, hooks/hooks.json, skills/daypack/SKILL.md}

Gemini CLI has a folder of its own, because it looks for other events in a file of the same name.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

from daypack.history.layout import Home, default_root
from daypack.hooks.settings import HookSettings
from daypack.hooks.setup.opencode import SCRIPT, render_script
from daypack.importers.place_settings import user_home

PLUGIN = "daypack"  # the name of the plug-in, of its marketplace, and of its folder in the marketplace
SHIPPED = os.path.join(os.path.dirname(os.path.dirname(__file__)), "plugin")
_HOOKS = f"{PLUGIN}/hooks/hooks.json"
MANIFEST = f"{PLUGIN}/.claude-plugin/plugin.json"
_QWEN_MANIFEST = f"{PLUGIN}/qwen-extension.json"
GEMINI = "gemini"  # the folder of its extension
_GEMINI_HOOKS = f"{GEMINI}/hooks/hooks.json"
_GEMINI_MANIFEST = f"{GEMINI}/gemini-extension.json"
_SKILL = "skills/daypack/SKILL.md"
_QWEN_FIELDS = ("name", "version", "description", "mcpServers")
_SERVER = "mcp --with-hooks"
_TOOL_SECONDS = 5
# Tools of Claude Code, whose names Copilot CLI takes for its own, and of Codex. Qwen Code drops what this hook adds:
# it would take a list of names for its own tools too, but of a pattern it starts no process.
_EDITING_TOOLS = "^(?:Edit|MultiEdit|Write|NotebookEdit|apply_patch)$"
_GEMINI_EDITING_TOOLS = "^(?:replace|write_file)$"


class Program(NamedTuple):
    """How agents start daypack: by the words of its absolute command, else from PATH.

    There are no words for a program that does not last: it was started by uvx, and then uvx is the last resort. An
    installed program is never replaced by a download. `variables` are those that it needs.
    """

    words: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def hook(self) -> str:
        """The command of a hook: it prints what daypack prints if daypack succeeds, and ends with 0 in any case.

        Agents take any text for context, and stop at some exit codes.
        """
        return self._hook("hook")

    @property
    def gemini_hook(self) -> str:
        """The command of a hook of Gemini CLI, which would show what is on standard error."""
        return self._hook("hook gemini", "exec 2>/dev/null; ")

    def _hook(self, command: str, first: str = "") -> str:
        last = "" if self.words else f"elif command -v uvx >/dev/null 2>&1; then uvx daypack {command}; "
        script = f'{first}{self._exports}out=$({self._branches(command)}; {last}fi) && printf %s "$out"; exit 0'
        return f"sh -c {shlex.quote(script)}"

    @property
    def server(self) -> str:
        """The shell script of the MCP server."""
        last = "" if self.words else f"else exec uvx daypack {_SERVER}; "
        return f"{self._exports}{self._branches(_SERVER, 'exec ')}; {last}fi"

    @property
    def packer(self) -> str:
        """The shell script of the process that packs the calls of opencode."""
        last = "" if self.words else "else exec uvx daypack hook opencode --serve; "
        return f"{self._exports}{self._branches('hook opencode --serve', 'exec ')}; {last}fi"

    @property
    def _exports(self) -> str:
        return "".join(f"export {name}={shlex.quote(value)}; " for name, value in self.variables)

    def _branches(self, command: str, run: str = "") -> str:
        found = f"command -v daypack >/dev/null 2>&1; then {run}daypack {command}"
        if not self.words:
            return f"if {found}"
        return f"if [ -x {shlex.quote(self.words[0])} ]; then {run}{shlex.join(self.words)} {command}; elif {found}"


def this_program(home: Home, environ: Mapping[str, str]) -> Program:
    """Return how to start the program that runs now, for this home; one in uv's cache is not relied on."""
    started = os.path.abspath(sys.argv[0])
    own = os.path.basename(started) == "daypack" and os.access(started, os.X_OK)
    words = (started,) if own else (sys.executable, "-P", "-m", "daypack")  # -P: no modules of the project
    variables: list[tuple[str, str]] = []
    if home.root != default_root({name: value for name, value in environ.items() if name != "DAYPACK_HOME"}):
        variables.append(("DAYPACK_HOME", home.root))
    if home.uid != str(os.getuid()):
        variables.append(("DAYPACK_UID", home.uid))
    return Program(() if is_temporary(words[0], environ) else words, tuple(variables))


def render_plugin(program: Program, settings: HookSettings) -> dict[str, bytes]:
    """Return the files of the marketplace by their path in it, with those hooks of tool calls that the user wants."""
    files = {path: _read(path) for path in _shipped_paths()}
    manifest, extension = (_with_server(_parse(files[path]), program) for path in (MANIFEST, _GEMINI_MANIFEST))
    hooks = _with_command(_parse(files[_HOOKS]), program.hook)
    gemini = _with_command(_parse(files[_GEMINI_HOOKS]), program.gemini_hook)
    hook = {"type": "command", "command": program.hook, "timeout": _TOOL_SECONDS}
    if settings.recall_before_edit:
        hooks["hooks"]["PreToolUse"] = [{"matcher": _EDITING_TOOLS, "hooks": [hook]}]
        own = {**hook, "name": PLUGIN, "command": program.gemini_hook, "timeout": 1_000 * _TOOL_SECONDS}
        gemini["hooks"]["AfterTool"] = [{"matcher": _GEMINI_EDITING_TOOLS, "hooks": [own]}]
    if settings.swap_output_tokens:
        hooks["hooks"]["PostToolUse"] = [{"hooks": [hook]}]
    files[SCRIPT] = render_script(files[SCRIPT], program.packer, dict(program.variables).get("DAYPACK_HOME", ""))
    qwen = {name: manifest[name] for name in _QWEN_FIELDS}
    return {
        **files,
        MANIFEST: _dump(manifest),
        _HOOKS: _dump(hooks),
        _QWEN_MANIFEST: _dump(qwen),
        _GEMINI_MANIFEST: _dump(extension),
        _GEMINI_HOOKS: _dump(gemini),
        f"{GEMINI}/{_SKILL}": files[f"{PLUGIN}/{_SKILL}"],
    }


def _with_server(manifest: dict[str, Any], program: Program) -> dict[str, Any]:
    manifest["mcpServers"][PLUGIN]["args"] = ["-c", program.server]
    return manifest


def _with_command(hooks: dict[str, Any], command: str) -> dict[str, Any]:
    for groups in hooks["hooks"].values():
        for group in groups:
            group["hooks"] = [{**hook, "command": command} for hook in group["hooks"]]
    return hooks


def plugin_version() -> str:
    """Return the version of the plug-in."""
    return _parse(_read(MANIFEST))["version"]


def is_temporary(path: str, environ: Mapping[str, str]) -> bool:
    """Return True if a program is in the cache of uv: `uvx daypack` runs it from there, and uv may delete it."""
    cache = environ.get("UV_CACHE_DIR") or os.path.join(
        environ.get("XDG_CACHE_HOME") or os.path.join(user_home(environ), ".cache"), "uv"
    )
    return os.path.realpath(path).startswith(os.path.realpath(cache) + os.sep)


def _shipped_paths() -> list[str]:
    return sorted(
        os.path.relpath(os.path.join(folder, name), SHIPPED) for folder, _, names in os.walk(SHIPPED) for name in names
    )


def _read(path: str) -> bytes:
    with open(os.path.join(SHIPPED, path), "rb") as file:
        return file.read()


def _parse(data: bytes) -> dict[str, Any]:
    return cast("dict[str, Any]", msgspec.json.decode(data))


def _dump(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
