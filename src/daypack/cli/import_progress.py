"""The import of many files in the terminal: a bar, and what could not be imported; for set-up and `import --all`."""

import os

from daypack.cli.progress_bar import ProgressBar
from daypack.cli.terminal import counted, error_line, print_note, safe_line
from daypack.importers.all_places.new_files import Done, Failure, NewFiles, Taken
from daypack.importers.place_settings import user_home

_MOST_FAILURES = 5


def take_in(new: NewFiles, command: str) -> dict[str, Taken]:
    """Import new files with a bar; Ctrl-C stops it, and the command continues. Return what each place has brought."""
    done_bytes = sessions = files = 0
    number = len(new.files)
    with ProgressBar(new.size) as bar:

        def show(done: Done) -> None:
            nonlocal done_bytes, sessions, files
            done_bytes, sessions, files = done_bytes + done.found.file.size, sessions + done.sessions, files + 1
            bar.show(done_bytes, f"{files:,} of {counted(number, 'file')}, Ctrl-C stops")

        try:
            return new.take_in(show)
        except KeyboardInterrupt:
            bar.__exit__()
            print_note(f"stopped after {files:,} of {counted(number, 'file')}; `{command}` continues")
            raise


def total(taken: dict[str, Taken]) -> Taken:
    """Return what all places together have brought."""
    parts = list(taken.values())
    sums = (sum(values) for values in zip(*(part[:-1] for part in parts), strict=True))
    return Taken(*sums, failures=tuple(failure for part in parts for failure in part.failures)) if parts else Taken()


def print_failures(failures: tuple[Failure, ...], most: int = _MOST_FAILURES) -> None:
    """Print which files were not imported, and why."""
    for failure in failures[:most]:
        print_note(f"  not imported: {short_path(failure.path)}: {error_line(failure.problem)}")
        if failure.hint:
            print_note(f"    → {error_line(failure.hint)}")
    if len(failures) > most:
        print_note(f"  … and {counted(len(failures) - most, 'file')} more; `daypack import --all --json` lists all")


def short_path(path: str) -> str:
    """Return a path as people write it: with ~ for their home."""
    home = user_home(os.environ)
    return safe_line(f"~{path[len(home) :]}" if path.startswith(home + os.sep) else path)
