"""The outputs of the tools in the sample session: files, listings and logs of a small project that prints posters."""

LAYOUT = """# The festival's posters: one section per size.
[project]
name = "harbour-festival"
date = "Saturday 13 June 2026, from 11:00"
place = "Old quay, north end, next to crane 7"
languages = ["en", "de", "zh"]
deadline = "2026-04-24"

[fonts]
title = "posters/Seemann.otf"
text = "posters/fonts/Inter.otf"
cjk = ""

[colours]
profile = "PSOcoated_v3.icc"
ink_limit = 300
water = "#0b4f6c"
sand = "#f4e9cd"

[size.a1]
width_mm = 594
height_mm = 841
bleed_mm = 3
copies = 40
paper = "135 g matt"

[size.a3]
width_mm = 297
height_mm = 420
bleed_mm = 3
copies = 600
paper = "135 g matt"

[size.a6]
width_mm = 105
height_mm = 148
bleed_mm = 2
copies = 3000
paper = "250 g matt"

[sponsors]
files = ["logos/city.svg", "logos/bakery.svg"]
row_height_mm = 24
"""

BUILD = '''"""Builds the posters: reads layout.toml, places texts and logos, writes one PDF per size and language."""

import tomllib
from pathlib import Path

from posters import fonts, ink, pdf, sponsors

SIZES = ("a1", "a3", "a6")


def build(layout: Path, out: Path, *, draft: bool = False) -> list[Path]:
    """Return the PDFs that were written."""
    settings = tomllib.loads(layout.read_text(encoding="utf-8"))
    faces = fonts.load(settings["fonts"], root=layout.parent.parent)
    written = []
    for size in SIZES:
        for language in settings["project"]["languages"]:
            page = pdf.Page(**{key: settings["size"][size][key] for key in ("width_mm", "height_mm", "bleed_mm")})
            page.place_title(settings["project"]["name"], faces["title"])
            page.place_text(f"texts/{language}.md", faces["text"])
            sponsors.place_row(page, settings["sponsors"])
            if not draft:
                ink.check(page, limit=settings["colours"]["ink_limit"])
            written.append(page.save(out / f"poster-{size}-{language}.pdf"))
    return written
'''

FONTS = '''"""Loads the fonts of a layout."""

from pathlib import Path


class FontMissing(FileNotFoundError):
    """A font file of the layout is not there."""


def load(settings, root):
    """Return the faces by name; an empty path means that the layout has no such font."""
    faces = {}
    for name, path in settings.items():
        if not path:
            continue
        file = Path(root, path)
        if not file.exists():
            raise FontMissing(path)
        faces[name] = Face(file.read_bytes())
    return faces


def fallback(text, faces):
    """Return the first face that has all characters of a text; the title's face has no Chinese characters."""
    for name in ("text", "cjk"):
        if name in faces and faces[name].covers(text):
            return faces[name]
    raise LookupError(f"no face covers {text[:12]!r}")
'''

_TEXTS = {
    "en": ("Harbour festival", "Music on three stages, boats to look at, rolls from the bakery.", "Free entry"),
    "de": ("Hafenfest", "Musik auf drei Bühnen, Schiffe zum Ansehen, Brötchen aus der Bäckerei.", "Eintritt frei"),
    "zh": ("海港节", "三个舞台的音乐，可参观的船只，码头面包店的面包。上海爵士乐队六月十三日晚八点演出。", "免费入场"),
}  # fmt: skip
_ACTS = (
    "Brass of the fire brigade", "School choir", "Jazz band from Shanghai", "Shanty choir", "Dance of the rowing club",
    "Puppet theatre", "Steel drums", "The harbour master reads",
)  # fmt: skip
_SUITES = ("layout", "fonts", "sponsors", "ink", "pdf", "texts")
_CHECKS = (
    "accepts the sizes of the printer",
    "refuses a missing file",
    "keeps the order of the layout",
    "rounds to a tenth",
)


def text_file(language: str) -> str:
    """Return the text of a poster with the programme."""
    title, about, entry = _TEXTS[language]
    acts = [f"- {11 + at}:{(at * 20) % 60:02} {act}, stage {1 + at % 3}" for at, act in enumerate(_ACTS)]
    return "\n".join((f"# {title}", "", about, "", "## Programme", *acts, "", f"**{entry}**", ""))


def build_log(number: int, problem: str = "") -> str:
    """Return the log of a build; it ends with the problem, if there is one."""
    lines = [f"build {number}: started by the poster job", "layout posters/layout.toml read, 3 sizes, 3 languages"]
    for at in range(9):
        size, language = ("a1", "a3", "a6")[at // 3], ("en", "de", "zh")[at % 3]
        if problem and at == number % 5 + 1:
            return "\n".join((*lines, problem, f"build {number}: failed, {at} of 9 posters written", "exit code 1"))
        ink, seconds = 241 + (number * 7 + at * 13) % 55, 3 + (number + at * 5) % 4
        lines += [
            f"poster-{size}-{language}: text placed, 8 acts in 2 columns, sponsors' row 24.0 mm high",
            f"poster-{size}-{language}: ink {ink} % of at most 300 %, 1 page, {seconds}.{at} s",
        ]
    return "\n".join((*lines, f"build {number}: passed in {35 + number % 9} s, 9 posters in out/", "exit code 0"))


def suite_log(failed: str = "") -> str:
    """Return the output of the tests; `failed` is one that does not pass, with its reason."""
    name, _, reason = failed.partition(": ")
    lines = ["============================= test session starts =============================="]
    for suite in _SUITES:
        for check in _CHECKS:
            test = f"tests/test_{suite}.py::test_{suite}_{check.replace(' ', '_')}"
            lines.append(f"{test} {'FAILED' if name and name in test else 'PASSED'}")
    count = len(_SUITES) * len(_CHECKS)
    if not failed:
        return "\n".join(
            (*lines, f"============================== {count} passed in 2.41s ==============================")
        )
    return "\n".join(
        (
            *lines,
            f"E   {reason}",
            f"======================= 1 failed, {count - 1} passed in 2.57s =======================",
        )
    )


def listing(*moved: str) -> str:
    """Return the files of the project with their sizes."""
    files = [
        "Makefile",
        "posters/build.py",
        "posters/fonts.py",
        "posters/ink.py",
        "posters/layout.toml",
        "posters/pdf.py",
    ]
    files += ["posters/sponsors.py", "posters/fonts/Inter.otf", "posters/fonts/Seemann.otf", *moved]
    files += [f"texts/{language}.md" for language in _TEXTS] + ["logos/city.svg", "logos/bakery.svg"]
    return "\n".join(f"{1200 + 977 * len(name) % 90_000:>7} {name}" for name in sorted(files))


def printer_offer() -> str:
    """Return the price list of the printer."""
    rows = [
        f"| {size} | {paper} | {copies} | {copies * cents / 100:,.2f} euros | {days} working days |"
        for size, paper, copies, cents, days in (
            ("A1", "135 g matt", 40, 940, 4), ("A1", "150 g gloss", 40, 1010, 4), ("A3", "135 g matt", 600, 62, 3),
            ("A3", "135 g matt", 800, 57, 3), ("A3", "recycled 120 g", 600, 66, 5), ("A6", "250 g matt", 3000, 6, 3),
            ("A6", "250 g matt", 5000, 5, 3), ("A6", "recycled 250 g", 3000, 7, 5),
        )
    ]  # fmt: skip
    head = ("# Offer 2026-0417 of the printing house", "", "| size | paper | copies | price | ready after |")
    notes = (
        "Files: PDF/X-4, profile PSOcoated_v3, fonts embedded, 3 mm bleed (2 mm for A6), ink at most 300 %.",
        "Data until 24 April, 12:00; a correction after that costs 85 euros. Delivery to the quay: 38 euros.",
    )
    return "\n".join((*head, "|---|---|---|---|---|", *rows, "", *notes))
