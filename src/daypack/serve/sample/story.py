"""The sample session: a coding agent repairs and finishes the poster job of a festival. Data only."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from daypack.serve.sample.outputs import (
    BUILD,
    FONTS,
    LAYOUT,
    build_log,
    listing,
    printer_offer,
    suite_log,
    text_file,
)

Action = Literal["compact", "undo", "delegate", "ask", "answer", "night"]
Fault = Literal["cut", "overloaded", "cache miss"]

SYSTEM = (
    "You maintain the poster job of the harbour festival: layout, fonts, texts and the build. Be brief, name files and "
    "builds, and say what you changed."
)
PRINTER = "Printing house: PDF/X-4, profile PSOcoated_v3, ink at most 300 %, bleed 3 mm. Data until 24 April, 12:00."
QUESTION = "How many A3 posters are ordered: 600 or 800?"
ANSWER = "800, on the same paper."
CHILD = "proofreader"
HANDOFF = "Read texts/en.md, texts/de.md and texts/zh.md. List mistakes with file and line, and change nothing."
RESULT = (
    "texts/de.md line 8: the school choir sings on stage 2, the plan of the quay says stage 1. texts/zh.md line 3: the "
    "jazz band plays at eight, the programme says 13:40. texts/en.md: no mistake."
)


class Call(NamedTuple):
    """A tool call and its output; no output: daypack answers it."""

    tool: str
    arguments: dict[str, str]
    output: str = ""


class Scene(NamedTuple):
    """A message of the user, the rounds of tool calls that follow, and the answer.

    `before` happens before the message; `faults` are by the number of the model call, from 0.
    """

    says: str
    rounds: tuple[tuple[Call, ...], ...]
    answers: str
    before: tuple[Action, ...] = ()
    faults: Mapping[int, Fault] = MappingProxyType({})


def read(path: str, text: str) -> Call:
    """Read a file."""
    return Call("read_file", {"path": path}, text)


def run(command: str, output: str) -> Call:
    """Run a command."""
    return Call("run", {"command": command}, output)


def edit(path: str, old: str, new: str) -> Call:
    """Change a file."""
    change = [*(f"-{line}" for line in old.splitlines()), *(f"+{line}" for line in new.splitlines())]
    return Call("edit_file", {"path": path, "old": old, "new": new}, "\n".join((f"{path}: changed", *change)))


def build(number: int, problem: str = "") -> Call:
    """Build the posters."""
    return run(f"make posters BUILD={number}", build_log(number, problem))


def suite(failed: str = "") -> Call:
    """Run the tests."""
    return run("pytest -v", suite_log(failed))


OLD_FONT, NEW_FONT = 'title = "posters/Seemann.otf"', 'title = "posters/fonts/Seemann.otf"'
LOGOS = 'files = ["logos/city.svg", "logos/bakery.svg"]'
ROW = """def place_row(page, settings):
    \"\"\"Place the sponsors' logos side by side at the foot of a page.\"\"\"
    width = page.inner_width_mm / len(settings["files"])
    for at, file in enumerate(settings["files"]):
        page.place_svg(file, x=at * width, height=settings["row_height_mm"])
"""
WITH_BANK = LOGOS.replace('"logos/bakery.svg"]', '"logos/savings-bank.svg", "logos/bakery.svg"]')
NEW_LAYOUT = LAYOUT.replace(OLD_FONT, NEW_FONT).replace(LOGOS, WITH_BANK).replace("copies = 600", "copies = 800")
NO_FACE = "LookupError: no face covers '海港节三个舞台'"

SCENES = (
    Scene(
        "The poster job fails since this morning. Can you find out why?",
        (
            (run("make log BUILD=1184", build_log(1184, "FontMissing: posters/Seemann.otf")),),
            (run("ls -R", listing()),),
        ),
        "I looked at build 1184: the font file posters/Seemann.otf is missing, so the PDF step stops.",
    ),
    Scene(
        "It was renamed yesterday to posters/fonts/Seemann.otf.",
        ((read("posters/layout.toml", LAYOUT),), (edit("posters/layout.toml", OLD_FONT, NEW_FONT),), (build(1185),)),
        "Then I change the path in posters/layout.toml and run the build again. Build 1185 passed in 41 s.",
    ),
    Scene(
        "Thanks. Decision: fonts live in posters/fonts from now on.",
        (),
        "Noted: fonts live in posters/fonts. The layout has no other path outside that folder.",
    ),
    Scene(
        "Always run the tests before you change layout.toml, and never change the paper without asking me.",
        ((suite(),),),
        "I will run the tests before every change of layout.toml, and ask about the paper. All 24 tests pass.",
    ),
    Scene(
        "The savings bank sponsors us; its logo goes between city and bakery. How is that row made?",
        ((read("posters/build.py", BUILD), read("posters/sponsors.py", ROW)),),
        "posters/sponsors.py divides the width by the number of logos, so a third logo fits without a change.",
    ),
    Scene(
        "Then add it and build again.",
        (
            (suite(),),
            (edit("posters/layout.toml", LOGOS, WITH_BANK),),
            (suite("sponsors_keeps_the_order: AssertionError: logos/savings-bank.svg has no viewBox"),),
            (edit("logos/savings-bank.svg", '<svg width="640">', '<svg viewBox="0 0 640 220">'),),
            (suite(), build(1186)),
        ),
        "The logo had no viewBox, so that it could not be scaled. I added one; all tests pass and build 1186 passed.",
        before=("compact",),
    ),
    Scene(
        "The printer sent an offer, mail/offer.md. What do they ask for?",
        ((read("mail/offer.md", printer_offer()),),),
        "PDF/X-4 with PSOcoated_v3, fonts embedded, ink at most 300 %, data until 24 April at 12:00. Open: "
        "600 or 800 copies of A3.",
        before=("undo", "ask"),
    ),
    Scene(
        "Take 800 of A3 then, they are cheaper by the piece. Same paper.",
        ((suite(),), (edit("posters/layout.toml", "copies = 600", "copies = 800"),)),
        "posters/layout.toml says 800 copies of A3 on 135 g matt. The order is 376.00 + 456.00 + 180.00 euros.",
        before=("answer",),
    ),
    Scene(
        "The Chinese poster shows empty boxes.",
        (
            (run("make posters LANGUAGE=zh", build_log(1187, NO_FACE)),),
            (read("texts/zh.md", text_file("zh")), read("posters/fonts.py", FONTS)),
        ),
        "Seemann and Inter have no Chinese characters, and the layout names no font under cjk: fonts.fallback fails.",
    ),
    Scene(
        "I put Noto Sans SC into posters/fonts, for the Chinese text.",
        (
            (run("ls -R", listing("posters/fonts/NotoSansSC.otf")),),
            (suite(),),
            (edit("posters/layout.toml", 'cjk = ""', 'cjk = "posters/fonts/NotoSansSC.otf"'),),
            (edit("posters/fonts.py", 'for name in ("text", "cjk"):', 'for name in ("title", "text", "cjk"):'),),
            (suite(), build(1188)),
        ),
        "The Chinese text is set in Noto Sans SC; Seemann stays the face of the other titles. Build 1188 passed.",
        faults={2: "cut"},
    ),
    Scene(
        "Before we continue: let another agent read the three texts.",
        ((Call("delegate", {"name": CHILD, "task": HANDOFF}, RESULT),),),
        "The proofreader found two mistakes: the choir's stage in texts/de.md, the band's time in texts/zh.md.",
        before=("delegate",),
    ),
    Scene(
        "The band plays at 13:40, and the choir sings on stage 1.",
        (
            (read("texts/de.md", text_file("de")),),
            (edit("texts/de.md", "- 12:20 School choir, stage 2", "- 12:20 School choir, stage 1"),),
            (edit("texts/zh.md", "六月十三日晚八点演出", "六月十三日13:40演出"),),
            (build(1189),),
        ),
        "Both texts are corrected, and build 1189 passed.",
    ),
    Scene(
        "Good morning. Where are we?",
        ((Call("search_history", {"query": "printer deadline data until"}),),),
        "All nine posters are built with the new logo, the new font and the corrected texts. The printer wants the "
        "data until 24 April, 12:00.",
        before=("night",),
        faults={0: "cache miss"},
    ),
    Scene(
        "What was the ink of the German A1 poster in the first build that passed?",
        ((Call("recall", {"id": "messages:13"}),),),
        "In build 1185 poster-a1-de had 244 % of at most 300 %.",
    ),
    Scene(
        "Is everything as the printer wants it?",
        (
            (suite(),),
            (read("posters/layout.toml", NEW_LAYOUT), read("texts/en.md", text_file("en"))),
            (build(1190), run("make proof BUILD=1190", printer_offer())),
        ),
        "All 24 tests pass, build 1190 passed, and the proof agrees with the offer of the printer.",
    ),
    Scene(
        "Write the mail to the printer.",
        ((edit("mail/order.md", "", "We order 40 A1, 800 A3 and 3,000 A6 on matt paper, as in offer 2026-0417."),),),
        "mail/order.md has the order: 40 A1, 800 A3 and 3,000 A6, offer 2026-0417, with the nine files of build 1190.",
        faults={0: "overloaded"},
    ),
    Scene(
        "Which booking number of the quay belongs on the permit line?",
        (),
        "HF-2026-0613: Ada booked the quay under that number.",
    ),
    Scene(
        "Put it on the poster and print.",
        (
            (suite(),),
            (edit("posters/layout.toml", 'deadline = "2026-04-24"', 'permit = "HF-2026-0613"'),),
            (build(1191),),
        ),
        "Build 1191 has the permit line HF-2026-0613 and passed. The nine files are ready for the printer.",
    ),
)
