"""Print how far the requirements are covered: `python -m tools.requirements`, from the root of the repository."""

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from requirements.manifest import SECTIONS, STATUSES, ManifestError, cover, load, marked


def table() -> str:
    """Return one row per section, and their sum, with a column per status."""
    requirements = load().values()
    counts = {section: Counter(it.status for it in requirements if it.section == section) for section in SECTIONS}
    rows = [(f"{section:<3} {title}", counts[section]) for section, title in SECTIONS.items()]
    rows.append(("total", sum(counts.values(), Counter[str]())))
    width = max(len(label) for label, _ in rows)
    lines = [f"{'section':<{width}}" + "".join(f"{name:>10}" for name in (*STATUSES, "total"))]
    for label, count in rows:
        numbers = [*(count[status] for status in STATUSES), count.total()]
        lines.append(f"{label:<{width}}" + "".join(f"{number:>10}" for number in numbers))
    return "\n".join(lines)


def listing(status: str, section: str | None) -> str:
    """Return the requirements of a status with their texts, each followed by its reason or its tests."""
    chosen = [it for it in load().values() if it.status == status and section in (None, it.section)]
    marks = marked()
    width = max((len(it.id) for it in chosen), default=0) + 2
    lines: list[str] = []
    for it in chosen:
        lines.append(f"{it.id:<{width}}{it.text}")
        notes = marks.get(it.id, ["no test is marked with it"]) if status == "covered" else [it.reason or "no reason"]
        lines += [f"{'':<{width}}- {note}" for note in notes]
    return "\n".join(lines)


def open_marks() -> list[str]:
    """Return the known ids that a test is marked with and that are not covered."""
    marks = marked()
    return [it.id for it in load().values() if it.id in marks and it.status != "covered"]


def run(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and print what it asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.requirements", description=__doc__)
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--list", nargs="+", metavar=("STATUS", "SECTION"), help="list one status, of one section or of all"
    )
    action.add_argument(
        "--cover", nargs="*", metavar="ID", help="set these ids to covered; without ids, all that a test is marked with"
    )
    options = parser.parse_args(arguments)
    try:
        if options.list is not None:
            status, section = options.list[0], options.list[1] if len(options.list) > 1 else None
            if status not in STATUSES or section not in (None, *SECTIONS) or len(options.list) > 2:
                known = f"{'|'.join(STATUSES)} [{'|'.join(SECTIONS)}]"
                parser.error(f"--list takes {known}, not {' '.join(options.list)}")
            print(listing(status, section))
        elif options.cover is not None:
            changed = cover(options.cover or open_marks())
            print(f"covered now: {', '.join(changed) or 'nothing new'}")
        else:
            print(table())
    except ManifestError as error:
        parser.error(str(error))


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `--list pending | head` ends without a traceback
    run()
