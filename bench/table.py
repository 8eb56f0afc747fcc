"""The result table: one row per measurement, with its target and whether it was met."""

from collections.abc import Iterable
from dataclasses import dataclass

from bench.measure import Clock, Ratio, Series, ratio

HEADS = ("", "history", "daypack", "baseline", "wall ×", "quartiles", "fastest 10% ×", "CPU ×", "target", "")


@dataclass(frozen=True)
class Row:
    """One measurement; figures are formatted, and empty if not measured or not meaningful."""

    name: str
    history: int | None = None
    ours: str = ""
    beside: str = ""
    wall: Ratio | None = None
    quiet: float | None = None
    cpu: Ratio | None = None
    target: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the cells in the order of `HEADS`."""
        shown = self.cpu if self.target.startswith("CPU") else self.wall
        return (
            self.name,
            f"{self.history:,}" if self.history else "",
            self.ours,
            self.beside,
            times(self.wall.value) if self.wall else "",
            f"{times(shown.low)}–{times(shown.high)}" if shown else "",
            times(self.quiet) if self.quiet else "",
            times(self.cpu.value) if self.cpu else "",
            self.target,
            "" if self.met is None else "ok" if self.met else "MISSED",
        )


@dataclass(frozen=True)
class Section:
    """The rows of one part of the benchmark, with notes on the method."""

    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limit:
    """A ratio that must not be exceeded, on one of the two clocks."""

    most: float
    clock: Clock = "wall"

    def __str__(self) -> str:
        return f"{'CPU' if self.clock == 'cpu' else 'wall'} ≤ {self.most:.3g} ×"


def compare(name: str, ours: Series, beside: Series, limit: Limit | None = None, history: int | None = None) -> Row:
    """Return the row for daypack and a baseline that were measured in alternation."""
    wall, cpu = ratio(ours.wall, beside.wall), ratio(ours.cpu, beside.cpu)
    clock = limit.clock if limit else "wall"
    return Row(
        name,
        history,
        duration(ours.middle(clock)),
        duration(beside.middle(clock)),
        wall,
        ours.quiet() / beside.quiet(),
        cpu,
        str(limit) if limit else "",
        (cpu if limit.clock == "cpu" else wall).value <= limit.most if limit else None,
    )


def times(value: float) -> str:
    """Return a ratio with three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def duration(nanoseconds: float) -> str:
    """Return a time in a readable unit."""
    if nanoseconds < 1e6:
        return f"{nanoseconds / 1e3:.3g} µs"
    return f"{nanoseconds / 1e6:,.3g} ms" if nanoseconds < 1e9 else f"{nanoseconds / 1e9:.3g} s"


def render(sections: Iterable[Section]) -> str:
    """Return all sections in columns of one width."""
    sections = tuple(sections)
    body = [HEADS, *(row.cells() for section in sections for row in section.rows)]
    widths = [max(len(cells[column]) for cells in body) for column in range(len(HEADS))]

    def line(cells: tuple[str, ...]) -> str:
        first = cells[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(cells[1:-1], widths[1:-1], strict=True)]
        return "  ".join([first, *rest, cells[-1]]).rstrip()

    lines = [line(HEADS)]
    for section in sections:
        lines += ["", section.title, *(line(row.cells()) for row in section.rows)]
        lines += [f"  {note}" for note in section.notes]
    return "\n".join(lines)
