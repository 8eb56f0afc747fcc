"""The manifest and the marks agree, in both directions; and the checks that say so are able to fail."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
from requirements.manifest import (
    SECTIONS,
    STATUSES,
    TESTS,
    ManifestError,
    Requirement,
    cover,
    load,
    marked,
    path_of,
    section_of,
)

ROOT = TESTS.parent

Requirements = Mapping[str, Requirement]
Marks = Mapping[str, list[str]]

# The checks. Each returns "" or two lines: the offending ids, then what to do about them.


def complaint(what: str, offending: Iterable[str], to_do: str) -> str:
    listed = ", ".join(offending)
    return f"{what}: {listed}\n{to_do}" if listed else ""


def with_tests(names: Iterable[str], marks: Marks) -> list[str]:
    return [f"{name} ({', '.join(marks[name])})" for name in names]


def unknown_marks(requirements: Requirements, marks: Marks) -> str:
    return complaint(
        "Marked on a test, but not in the manifest",
        with_tests((name for name in marks if name not in requirements), marks),
        "Correct the id in the mark; ids are those of tests/requirements/*.toml.",
    )


def marks_not_covered(requirements: Requirements, marks: Marks) -> str:
    early = [name for name in marks if name in requirements and requirements[name].status != "covered"]
    return complaint(
        "Marked on a test, but not covered in the manifest",
        with_tests(early, marks),
        "Run `python -m tools.requirements --cover <ids>`, or take the mark off while the test proves only a part.",
    )


def covered_without_test(requirements: Requirements, marks: Marks) -> str:
    return complaint(
        "Covered in the manifest, but marked on no test",
        (name for name, it in requirements.items() if it.status == "covered" and name not in marks),
        'Mark the test that proves it with @pytest.mark.requirement("<id>"), or set status and reason to pending.',
    )


def wrong_statuses(requirements: Requirements) -> str:
    return complaint(
        "Status is none of the known ones",
        (f"{it.id} ({it.status!r})" for it in requirements.values() if it.status not in STATUSES),
        f"Use one of {', '.join(STATUSES)}.",
    )


def wrong_reasons(requirements: Requirements) -> str:
    return complaint(
        "Reason is missing, or given for a covered requirement",
        (it.id for it in requirements.values() if (it.status == "covered") == bool((it.reason or "").strip())),
        "Give a pending or deferred requirement a reason, and remove that of a covered one.",
    )


def wrong_texts(requirements: Requirements) -> str:
    texts = [normalised(it.text) for it in requirements.values()]
    return complaint(
        "Text is empty, not on one line, or the same as another",
        (
            it.id
            for it, text in zip(requirements.values(), texts, strict=True)
            if not text or it.text != it.text.strip() or len(it.text.splitlines()) != 1 or texts.count(text) > 1
        ),
        "Write one line that states this requirement and no other.",
    )


def copied_texts(requirements: Requirements, register: Mapping[str, str]) -> str:
    theirs = {sentence for line in register.values() for sentence in sentences(line)}
    return complaint(
        "Text is copied from the register",
        (it.id for it in requirements.values() if not theirs.isdisjoint(sentences(it.text))),
        "Say it in our own words, with every number and literal name kept.",
    )


def wrong_ids(requirements: Requirements, register: Mapping[str, str]) -> str:
    missing = [f"{name} (missing)" for name in register if name not in requirements]
    surplus = [f"{name} (not in the register)" for name in requirements if name not in register]
    # Order is compared over the ids that both have: one missing id is one complaint.
    ours = [name for name in requirements if name in register]
    misplaced = [
        f"{mine} (where {other} belongs)"
        for section in SECTIONS
        for mine, other in zip(
            (name for name in ours if section_of(name) == section),
            (name for name in register if section_of(name) == section and name in requirements),
            strict=True,
        )
        if mine != other
    ]
    return complaint(
        "Ids differ from the register",
        missing + surplus + misplaced,
        "Make tests/requirements/*.toml list the same ids in the same order; ids are never renumbered.",
    )


def normalised(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def sentences(text: str) -> set[str]:
    """Return the whole and each of its parts of five words or more, free of case and punctuation.

    Literal names and constants in backquotes must be the same, so they do not count in the parts.
    """
    parts = (normalised(part) for part in re.split(r"[.;:](?= |$)|->", re.sub(r"`[^`]*`", "", text)))
    return {normalised(text), *(part for part in parts if part.count(" ") >= 4)}


def read_register(path: Path) -> dict[str, str]:
    """Read `- <ID> [KEYWORD] sentence (s0:1-2)` lines, without keyword and citation."""
    line = re.compile(r"- ((?:S\d-[A-Z]+[\d.a-z]*|[XGT]\d+)) (?:\[[A-Z]+\] )?(.*?)(?: \(s\d:[^)]*\))?")
    found = (line.fullmatch(each) for each in path.read_text(encoding="utf-8").splitlines())
    return {match[1]: match[2] for match in found if match}


# The manifest as it is.


def test_every_mark_names_a_requirement_of_the_manifest():
    problem = unknown_marks(load(), marked())
    assert not problem, problem


def test_every_marked_requirement_is_covered():
    problem = marks_not_covered(load(), marked())
    assert not problem, problem


def test_every_covered_requirement_is_marked_on_a_test():
    problem = covered_without_test(load(), marked())
    assert not problem, problem


@pytest.mark.parametrize("check", [wrong_statuses, wrong_reasons, wrong_texts])
def test_every_requirement_is_written_as_agreed(check: Callable[[Requirements], str]):
    problem = check(load())
    assert not problem, problem


@pytest.fixture
def register() -> dict[str, str]:
    named = os.environ.get("DAYPACK_REQUIREMENTS")
    path = Path(named) if named else ROOT.parent / "shared" / "REQUIREMENTS.md"
    if not path.is_file() and not named:
        pytest.skip("no ../shared/REQUIREMENTS.md beside this repository; DAYPACK_REQUIREMENTS may name it")
    return read_register(path)


@pytest.mark.parametrize("check", [wrong_ids, copied_texts])
def test_the_manifest_follows_the_register(
    check: Callable[[Requirements, Mapping[str, str]], str], register: dict[str, str]
):
    problem = check(load(), register)
    assert not problem, problem


# The checks can fail.


def requirement(name: str, text: str = "It holds.", status: str = "pending", reason: str | None = "later"):
    return Requirement(name, section_of(name), text, status, reason)


def by_id(*requirements: Requirement) -> dict[str, Requirement]:
    return {it.id: it for it in requirements}


def assert_complaint(problem: str, *ids: str):
    first, to_do = problem.splitlines()
    assert re.findall(r"\b(?:S\d-[A-Z]\d+|[XGT]\d+)\b(?=,| \(|$)", first) == list(ids)
    assert to_do


def test_a_mark_with_an_unknown_id_is_named_with_its_test():
    problem = unknown_marks(by_id(requirement("X1")), {"X1": ["a::test_b"], "X99": ["a::test_c"]})
    assert_complaint(problem, "X99")
    assert "a::test_c" in problem


@pytest.mark.parametrize("status", ["pending", "deferred"])
def test_a_mark_for_an_open_requirement_is_named(status: str):
    covered = requirement("X2", status="covered", reason=None)
    problem = marks_not_covered(
        by_id(requirement("X1", status=status), covered), {"X1": ["a::test_b"], "X2": ["a::test_b"]}
    )
    assert_complaint(problem, "X1")


def test_a_covered_requirement_without_a_test_is_named():
    requirements = by_id(*(requirement(name, status="covered", reason=None) for name in ("X1", "X2")))
    assert_complaint(covered_without_test(requirements, {"X1": ["a::test_b"]}), "X2")


def test_a_status_outside_the_three_is_named():
    assert_complaint(wrong_statuses(by_id(requirement("X1", status="done"), requirement("X2"))), "X1")


def test_a_missing_and_a_surplus_reason_are_named():
    requirements = by_id(
        requirement("X1", reason=None),
        requirement("X2", reason=" "),
        requirement("X3", status="covered"),
        requirement("X4", status="covered", reason=None),
        requirement("X5"),
    )
    assert_complaint(wrong_reasons(requirements), "X1", "X2", "X3")


def test_an_empty_a_long_and_a_repeated_text_are_named():
    texts = {"X1": "", "X2": "One\ntwo.", "X3": "Same thing.", "X4": "same thing", "X5": " Padded.", "X6": "Fine."}
    problem = wrong_texts(by_id(*(requirement(name, text) for name, text in texts.items())))
    assert_complaint(problem, "X1", "X2", "X3", "X4", "X5")


def test_a_missing_a_surplus_and_a_misplaced_id_are_named():
    register = {"G1": "", "X1": "", "X2": "", "X3": ""}
    requirements = by_id(*(requirement(name) for name in ("X2", "X1", "G1", "G2")))
    problem = wrong_ids(requirements, register)
    assert all(part in problem for part in ("X3 (missing)", "G2 (not in the register)", "X2 (where X1 belongs)"))
    assert not wrong_ids(by_id(*(requirement(name) for name in ("X1", "X2", "X3", "G1"))), register)


def test_a_text_copied_from_the_register_is_named(tmp_path: Path):
    path = tmp_path / "register.md"
    path.write_text(
        "# Title\n- S0-R1 [MUST] Every response has `a` section. (s0:7-9)\n- S0-R2 [RULE] Short. (s0:1)\n"
        "- X1 one thing or the other. -> Take the first of the two. Never both.\nprose\n",
        encoding="utf-8",
    )
    register = read_register(path)
    assert list(register) == ["S0-R1", "S0-R2", "X1"]
    requirements = by_id(
        requirement("S0-R1", "every response has a section"),
        requirement("S0-R2", "short!"),
        requirement("X1", "Take the first of the two; and more."),
        requirement("X2", "Of the two the first is taken."),
    )
    assert_complaint(copied_texts(requirements, register), "S0-R1", "S0-R2", "X1")


# The files.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a manifest of one requirement with every field and a dotted id, and empty sections."""
    for section in SECTIONS:
        path_of(section, tmp_path).write_text("", encoding="utf-8")
    path_of("S0", tmp_path).write_text(
        '["S0-R8.1"]\ntext = "One."\nstatus = "pending"\nreason = "later"\n\n'
        '[S0-R9]\ntext = "Two… \\"status\\"."\nstatus = "deferred"\nreason = "status = never"\n',
        encoding="utf-8",
    )
    return tmp_path


def test_load_gives_id_section_text_status_and_reason(folder: Path):
    assert load(folder) == {
        "S0-R8.1": Requirement("S0-R8.1", "S0", "One.", "pending", "later"),
        "S0-R9": Requirement("S0-R9", "S0", 'Two… "status".', "deferred", "status = never"),
    }


@pytest.mark.parametrize(
    "toml",
    [
        '[X1]\ntext = "No status."\n',
        '[X1]\ntext = "Too much."\nstatus = "pending"\nreason = "r"\nowner = "o"\n',
        '[X1]\ntext = 1\nstatus = "pending"\nreason = "r"\n',
        '[X1.1]\ntext = "Dotted without quotes."\nstatus = "pending"\nreason = "r"\n',
        '[S1-X1]\ntext = "In the wrong file."\nstatus = "pending"\nreason = "r"\n',
        "X1 = 1\n",
        "[X1\n",
    ],
)
def test_load_refuses_a_table_that_is_not_a_requirement(folder: Path, toml: str):
    path_of("X", folder).write_text(toml, encoding="utf-8")
    with pytest.raises(ManifestError, match=r"^x\.toml: "):
        load(folder)


def test_load_refuses_a_manifest_without_one_of_its_files(folder: Path):
    path_of("T", folder).unlink()
    with pytest.raises(ManifestError, match=r"^t\.toml: "):
        load(folder)


def test_cover_changes_status_and_reason_of_the_named_ids_and_no_other_byte(folder: Path):
    before = path_of("S0", folder).read_bytes()
    assert cover(["S0-R9", "S0-R9"], folder) == ["S0-R9"]
    after = before.replace(b'status = "deferred"\nreason = "status = never"\n', b'status = "covered"\n')
    assert path_of("S0", folder).read_bytes() == after
    assert cover(["S0-R9"], folder) == []
    assert cover(["S0-R8.1"], folder) == ["S0-R8.1"]
    assert [it.status for it in load(folder).values()] == ["covered", "covered"]
    assert not wrong_reasons(load(folder))


def test_cover_changes_nothing_when_an_id_is_unknown(folder: Path):
    before = path_of("S0", folder).read_bytes()
    with pytest.raises(ManifestError, match="S0-R10"):
        cover(["S0-R9", "S0-R10"], folder)
    assert path_of("S0", folder).read_bytes() == before


# The command.


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tools.requirements", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_command_counts_every_requirement_by_section_and_status():
    result = run()
    assert result.returncode == 0, result.stderr
    head, *rows, total = (line.split() for line in result.stdout.splitlines())
    assert head[-4:] == [*STATUSES, "total"]
    assert [row[0] for row in rows] == list(SECTIONS)
    for column, status in enumerate(STATUSES, start=-4):
        assert sum(int(row[column]) for row in rows) == int(total[column])
        assert int(total[column]) == sum(it.status == status for it in load().values())
    assert int(total[-1]) == len(load())


def test_the_command_lists_one_status_of_one_section():
    result = run("--list", "pending", "X")
    assert result.returncode == 0, result.stderr
    expected = [it.id for it in load().values() if it.section == "X" and it.status == "pending"]
    assert re.findall(r"^(\S+)", result.stdout, flags=re.MULTILINE) == expected


@pytest.mark.parametrize("arguments", [("--list", "done"), ("--list", "pending", "Y"), ("--cover", "X99")])
def test_the_command_refuses_what_it_does_not_know(arguments: tuple[str, ...]):
    result = run(*arguments)
    assert result.returncode == 2
    assert arguments[-1] in result.stderr
