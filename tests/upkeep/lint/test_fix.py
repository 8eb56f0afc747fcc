"""What `--fix` removes is stated elsewhere or has its reason; the rest keeps its bytes, and a second run rests."""

import re
from collections.abc import Iterator

import pytest
from upkeep.lint.labels import Workspace, read_half

from daypack.history.layout import Layout
from daypack.text.statements.passages import Document, Role
from daypack.text.tokens import counter_for
from daypack.upkeep.lint.prompt_texts import BLOCKS, injected
from daypack.upkeep.lint.removals import Removal
from daypack.upkeep.lint.report import Report, examine

WORKSPACES = [*read_half("development"), *read_half("held_out")]
_STATED = re.compile(r"(?:stated in|refers to) (\S+) L(\d+)(?:-(\d+))?")
_ROLES: dict[str, Role] = {"MEMORY.md": "memory", "CONTEXT.md": "state"}


def lint(texts: dict[str, str], *, on: tuple[str, ...] = ()) -> Report:
    own = [Document(name, text, _ROLES.get(name, "instruction")) for name, text in texts.items()]
    own += injected("/w", Layout("/w", "/w/a/b/c/d/e"), None, dict.fromkeys(on, True))
    return examine(own, counter_for(None), unused=[name for name in BLOCKS if name not in on])


def after(texts: dict[str, str], report: Report) -> dict[str, str]:
    return {name: report.texts[name][1] if name in report.texts else text for name, text in texts.items()}


def removed_lines(report: Report, texts: dict[str, str]) -> Iterator[tuple[Removal, str, int]]:
    for removal in report.removals:
        for number in range(removal.first, removal.last + 1):
            if removal.source in texts and not removal.words:
                yield removal, removal.source, number


@pytest.mark.requirement("S1-I3", "S1-L1.3")
@pytest.mark.parametrize("workspace", WORKSPACES, ids=lambda workspace: workspace.name)
def test_each_removed_line_is_stated_elsewhere_or_has_its_reason(workspace: Workspace) -> None:
    report = workspace.report()
    gone = {(source, number) for _, source, number in removed_lines(report, workspace.texts)}
    for removal, source, number in removed_lines(report, workspace.texts):
        if match := _STATED.match(removal.reason):
            keeper, first, last = match[1], int(match[2]), int(match[3] or match[2])
            assert (keeper, first) != (source, number)
            assert any((keeper, line) not in gone for line in range(first, last + 1))
        else:
            assert removal.reason.startswith(("session history", "stale: no", "provided by the switch", "model ids"))
    for name, (before, text) in report.texts.items():
        rows = before.split("\n")
        kept = [row for number, row in enumerate(rows, 1) if row.startswith("- ") and (name, number) not in gone]
        assert [row for row in kept if row not in text.split("\n")] == []


@pytest.mark.parametrize("workspace", WORKSPACES, ids=lambda workspace: workspace.name)
def test_lines_without_a_label_and_near_misses_stay(workspace: Workspace) -> None:
    labelled = {place for label, places in workspace.labels.items() if label[0] != "n" for place in places}
    for _, source, number in removed_lines(workspace.report(), workspace.texts):
        row = workspace.texts[source].split("\n")[number - 1]
        assert not row.strip() or (source, number) in labelled


@pytest.mark.parametrize("workspace", WORKSPACES, ids=lambda workspace: workspace.name)
def test_a_second_fix_changes_nothing(workspace: Workspace) -> None:
    texts = after(workspace.texts, workspace.report())
    again = workspace._replace(texts=texts).report()
    assert (again.removals, again.texts) == ((), {})


RULES = "# A\n\n- Run the tests before every commit.\n- Be kind.\n"
FACTS = "# M\n\n- Before committing, always run tests.\n- Tea at four, and the pot is blue.\n"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_encoding_line_ends_and_the_final_line_end_stay(mark: str, newline: str, end: str) -> None:
    def written(text: str) -> str:
        return mark + (text.rstrip("\n") + end).replace("\n", newline)

    texts = {"AGENTS.md": written(RULES), "MEMORY.md": written(FACTS)}
    found = after(texts, lint(texts))
    assert found["AGENTS.md"] == texts["AGENTS.md"]
    assert found["MEMORY.md"] == written("# M\n\n- Tea at four, and the pot is blue.\n")


def test_the_paraphrase_of_a_rule_is_found_and_leaves_memory() -> None:
    report = lint({"AGENTS.md": RULES, "MEMORY.md": FACTS})
    assert [(row.kind, "; ".join(map(str, row.places))) for row in report.duplicates] == [
        ("near", "AGENTS.md L3; MEMORY.md L3")
    ]
    assert [(removal.source, removal.first, removal.reason) for removal in report.removals] == [
        ("MEMORY.md", 3, "stated in AGENTS.md L3")
    ]


@pytest.mark.requirement("S1-D2.1", "X38")
@pytest.mark.parametrize("other", ["AGENTS.md", "SOUL.md", "USER.md"])
def test_the_memory_explanation_stays_where_tools_has_it(other: str) -> None:
    explained = (
        "- CONTEXT.md holds the plan of the day.\n- MEMORY.md holds lasting facts.\n- The log holds each word.\n"
    )
    texts = {
        other: f"# O\n\n- Sail at dawn.\n\n## What I remember\n\n{explained}",
        "TOOLS.md": "# T\n\n## Stores\n\n- The plan of the day is held in CONTEXT.md.\n"
        "- Lasting facts: held in MEMORY.md.\n- Log: holds each word.\n",
    }
    found = after(texts, lint(texts))
    assert found == {other: "# O\n\n- Sail at dawn.\n", "TOOLS.md": texts["TOOLS.md"]}


@pytest.mark.requirement("S1-D6", "S1-P1.6")
@pytest.mark.parametrize("title", ["Verification protocol", "How to be sure"])
def test_the_verification_protocol_leaves_when_provenance_is_on(title: str) -> None:
    protocol = (
        f"## {title}\n\n- Open the file or run the tool before a claim is made.\n- State the source of each claim:\n"
        "  a message, a file, a tool result.\n- Unchecked claims are marked as such.\n- Never assert from memory.\n"
    )
    texts = {"AGENTS.md": f"# A\n\n## Boats\n\n- Sail at dawn.\n- Reef early.\n\n{protocol}"}
    report = lint(texts, on=("provenance",))
    assert after(texts, report) == {"AGENTS.md": "# A\n\n## Boats\n\n- Sail at dawn.\n- Reef early.\n"}
    assert {removal.reason for removal in report.removals} == {"provided by the switch provenance"}


def test_a_section_about_tools_is_no_verification_protocol() -> None:
    texts = {
        "AGENTS.md": "# A\n\n## Files\n\n- Open a file with the tool `read`.\n"
        "- Run the tool again if there is no result.\n"
        "- Check the message of an error.\n- Say which file is next.\n"
    }
    assert lint(texts, on=("provenance",)).texts == {}


@pytest.mark.requirement("S1-P1.4")
@pytest.mark.parametrize(
    "line", ["Narrate as SOUL.md says.", "Narration: see SOUL.md.", "Follow SOUL.md when you narrate."]
)
def test_a_reference_that_names_its_file_is_reported_kept_and_clean(line: str) -> None:
    texts = {
        "AGENTS.md": f"# A\n\n- {line}\n- Sail at dawn.\n",
        "SOUL.md": "# S\n\n## Narration\n\n- Say what you will do.\n- Narrate errors too.\n- One sentence each.\n",
    }
    report = lint(texts)
    assert [(row.kind, "; ".join(map(str, row.places))) for row in report.duplicates] == [
        ("cross-reference", "AGENTS.md L3; SOUL.md L3-7")
    ]
    assert (report.clean, report.texts, report.history) == (True, {}, ())


@pytest.mark.parametrize(
    ("one", "two", "differ"),
    [
        ("Retry a failed upload three times.", "Retry a failed upload 5 times.", "number, path or name"),
        ("Write the logs to `/var/log/app`.", "Write the logs to `/srv/log/app`.", "number, path or name"),
        ("Always deploy on Friday evening.", "Never deploy on Friday evening.", "negation"),
        ("Check the oil before each long trip.", "Check the oil after each long trip.", "order"),
        ("Print at most nine pages of a report.", "Print at least nine pages of a report.", "order"),
        ("Paint the boats blue.", "Paint the boats blue if the owner agrees and pays.", "condition"),
    ],
)
def test_statements_that_differ_in_one_thing_are_kept_and_may_contradict(one: str, two: str, differ: str) -> None:
    report = lint({"AGENTS.md": f"# A\n\n- {one}\n", "MEMORY.md": f"# M\n\n- {two}\n"})
    assert (report.duplicates, report.texts, report.clean) == ((), {}, True)
    assert [row.kind for row in report.conflicts] == [differ]


def test_vectors_confirm_what_shares_few_words_and_are_not_needed() -> None:
    texts = {"AGENTS.md": "- Water the tall plants at dawn.\n", "MEMORY.md": "- Tall plants get a drink at sunrise.\n"}
    own = [Document(name, text, _ROLES.get(name, "instruction")) for name, text in texts.items()]
    counter = counter_for(None)
    assert examine(own, counter).duplicates == ()
    assert examine(own, counter, similarity=lambda texts: None).duplicates == ()
    alike = examine(own, counter, similarity=lambda texts: [[1.0] * len(texts)] * len(texts))
    assert [row.kind for row in alike.duplicates] == ["near"]
    unlike = examine(own, counter, similarity=lambda texts: [[0.1] * len(texts)] * len(texts))
    assert unlike.duplicates == ()


@pytest.mark.requirement("S1-L1.3")
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("The fan must run while the oven is in use.", "Keep the fan off while no oven is in use."),
        ("Deploy on Friday.", "Do not deploy on Friday."),
        ("Accept parcels for the neighbours.", "Refuse parcels for the neighbours."),
    ],
)
def test_a_rule_is_never_removed_for_its_opposite(one: str, two: str) -> None:
    report = lint({"AGENTS.md": f"# A\n\n- {one}\n", "MEMORY.md": f"# M\n\n- {two}\n"})
    assert (report.duplicates, report.texts) == ((), {})
    assert [row.kind for row in report.conflicts] == ["negation"]
