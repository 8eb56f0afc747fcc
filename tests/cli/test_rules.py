"""`daypack rules`: the standing rules of the user."""

import json
import subprocess
from collections.abc import Callable

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_rules_are_listed_added_pinned_and_dropped(command: Command) -> None:
    command("append", "talk", "The harbour is closed. From now on, call me Ada.")
    assert command("rules", "talk").stdout == "rule-1  From now on, call me Ada.  (messages:1)\n"
    assert command("rules", "talk", "add", "Never use sudo.").stdout == "added rule-a1: Never use sudo.\n"
    assert command("rules", "talk", "pin", "rule-1").stdout == "pinned rule-1: From now on, call me Ada.\n"
    listed = json.loads(command("rules", "talk", "--json").stdout)
    assert [(rule["id"], rule.get("pinned", False)) for rule in listed] == [("rule-1", True), ("rule-a1", False)]
    assert command("rules", "talk", "drop", "rule-1").stdout == "dropped rule-1: From now on, call me Ada.\n"
    assert command("rules", "talk").stdout == "rule-a1  Never use sudo.  (added)\n"


def test_listing_rules_appends_nothing(command: Command) -> None:
    command("append", "talk", "From now on, call me Ada.")
    before = command("log", "talk", "--events").stdout
    command("rules", "talk")
    assert command("log", "talk", "--events").stdout == before


def test_a_missing_rule_or_value_is_reported(command: Command) -> None:
    command("append", "talk", "Hello.")
    assert "no standing rules" in command("rules", "talk").stderr
    missing = command("rules", "talk", "drop", "rule-9")
    assert missing.returncode == 1
    assert "no rule rule-9 is in force" in missing.stderr
    assert command("rules", "talk", "add").returncode == 2
