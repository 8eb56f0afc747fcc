"""List the standing rules of a session's user; add, drop or pin one."""

import argparse

from daypack.cli.options import add_place, open_named
from daypack.cli.terminal import counted, json_text, print_note, safe, safe_line, shell_word
from daypack.errors import BadInput


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place(parser)
    parser.add_argument("action", nargs="?", choices=("add", "drop", "pin", "unpin"), help="default: list the rules")
    parser.add_argument("value", nargs="?", metavar="TEXT|ID", help="text of the rule to add, or id of the rule")


def run(args: argparse.Namespace) -> int:
    """List the rules, or change one."""
    if args.action and not args.value:
        hint = "rules SESSION add TEXT, or rules SESSION drop|pin|unpin ID"
        raise BadInput(f"{args.action} needs a value", operation="rules", place="arguments", hint=hint)
    with open_named(args) as session:
        if args.action == "add":
            changed = session.add_rule(args.value)
        elif args.action == "drop":
            changed = session.drop_rule(args.value)
        elif args.action:
            changed = session.pin_rule(args.value, on=args.action == "pin")
        else:
            changed = None
        rules = session.rules()
    if args.json:
        print(json_text(rules))
    elif changed:
        done = {"add": "added", "drop": "dropped", "pin": "pinned", "unpin": "unpinned"}[args.action]
        print(f"{done} {safe(changed.id)}: {safe_line(changed.text)}")
    elif not rules:
        print_note(f"no standing rules; add one with `daypack rules {shell_word(args.session)} add TEXT`")
    else:
        width = max(len(rule.id) for rule in rules)
        for rule in rules:
            source = f"{rule.source}, pinned" if rule.pinned else rule.source
            print(f"{safe_line(rule.id):{width}}  {safe_line(rule.text)}  ({source})")
        print_note(f"{counted(len(rules), 'rule')}; drop one with `daypack rules {shell_word(args.session)} drop ID`")
    return 0
