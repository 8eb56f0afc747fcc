"""Words that people guess for a command or an action, and what daypack calls it; imported only after a mistake."""

from collections.abc import Collection, Iterable

from daypack.types.names import did_you_mean

# The words that may stand for a command, by what is suggested for them.
SYNONYMS = {
    "session list": ("list", "ls", "sessions"),
    "session new": ("init", "new", "create", "start"),
    "session show": ("info",),
    "log": ("cat", "show", "tail", "history", "messages"),
    "log SESSION --events": ("events",),
    "view": ("page", "ui", "open", "inspect", "browse"),
    "append": ("add", "send", "say", "write"),
    "accept": ("reply", "answer"),
    "find": ("grep", "query"),
    "turns": ("usage", "cost", "costs", "stats"),
    "gc SESSION --delete": ("rm", "delete", "del", "remove", "session rm", "session delete", "session remove"),
    "gc SESSION --archive": ("archive", "session archive"),
    "doctor": ("check", "verify", "fsck", "repair"),
    "user list": ("users",),
    "memory list": ("memories",),
    "--version": ("version",),
}
_SETTINGS = ("config", "settings", "set")
# The same for the actions of a noun; an action counts only for a noun that has it.
_ACTIONS = {
    "list": ("ls",),
    "show": ("get", "cat", "view", "info"),
    "new": ("create", "add", "init"),
    "set": ("create", "add", "new", "edit", "update"),
    "erase": ("rm", "delete", "remove", "drop"),
    "revoke": ("rm", "delete", "remove", "erase"),
    "pull": ("get", "download", "install"),
    "use": ("set", "choose"),
}


def suggest_command(word: str, commands: Iterable[str]) -> str:
    """Return what an unknown command may have been meant for, by its meaning or else by its spelling; "" if nothing."""
    if word in _SETTINGS:
        return "settings are in config.toml and in environment variables, see Settings in docs/cli.md;"
    return _same_meaning(word) or did_you_mean(word, commands)


def suggest_action(noun: str, word: str, actions: Collection[str]) -> str:
    """Return the same for an unknown action of a noun, as in `session ls`."""
    if meant := _same_meaning(f"{noun} {word}"):
        return meant
    found = [action for action, words in _ACTIONS.items() if word in words and action in actions]
    return f"did you mean {found[0]}?" if found else did_you_mean(word, actions)


def _same_meaning(words: str) -> str:
    found = [command for command, synonyms in SYNONYMS.items() if words in synonyms]
    return f"did you mean `daypack {found[0]}`?" if found else ""
