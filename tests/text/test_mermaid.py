"""Diagrams are counted, or they are not."""

import pytest

from daypack.text.mermaid import blocks, count_nodes

# As the seed draws it: Mermaid refuses the question mark in an id and brackets in a label without quotation marks.
REFUSED = """flowchart TD
    NewMsg[New user / assistant message] --> Store?{Store this?}
    Store? -- Yes --> Summ[Generate summary]
    Summ --> Add[add_entry(raw_entry, summary)] --> Continue
"""


@pytest.mark.parametrize(
    ("source", "nodes"),
    [
        ("graph LR\nA-->B-->C", 3),
        ('flowchart TD\n  A["get_context()"] -->|new| B(put) --> C{{hex}}\n  B -- yes / no --> C\n  C -.-> D & E\n', 5),
        ("flowchart\n  A ==> B; %% why\n  style A fill:#fff\n  classDef x fill:#000\n  B:::x --- C([stadium])", 3),
        ("graph TD\n subgraph one\n A --> B\n end\n C[(db)]", 3),
        ("stateDiagram-v2\n [*] --> Open\n Open --> Done : all of it\n Done --> [*]", 4),
        ("sequenceDiagram\n participant A\n actor B as Bob\n A->>B: hi (there)\n B-->>C: ok", 3),
        ("graph TD\n" + "\n".join(f"N{at} --> N{at + 1}" for at in range(9)), 10),
        ("graph TD\n" + "\n".join(f"N{at} --> N{at + 1}" for at in range(10)), 11),
        ("graph TD", 0),
    ],
)
def test_the_nodes_of_a_diagram_are_counted_once_each(source: str, nodes: int) -> None:
    assert count_nodes(source) == nodes


@pytest.mark.requirement("X39")
@pytest.mark.parametrize(
    "source",
    [
        REFUSED,
        "graph TD\n A[x (y)] --> B",
        "pie\n a: 3",
        "",
        "gantt\n title x",
        "graph TD\n A --> ",
        "graph TD\n A -> B",
        "A --> B",
    ],
)
def test_a_diagram_that_cannot_be_read_has_no_count(source: str) -> None:
    assert count_nodes(source) is None


def test_blocks_are_found_with_their_fences_also_one_that_is_not_closed() -> None:
    text = "a\n```mermaid\ngraph TD\nA-->B\n```\nb\n~~~ mermaid\ngraph TD\n"
    assert [text[start:stop] for start, stop, _ in blocks(text)] == [
        "```mermaid\ngraph TD\nA-->B\n```",
        "~~~ mermaid\ngraph TD\n",
    ]
    assert [source for _, _, source in blocks(text)] == ["graph TD\nA-->B\n", "graph TD\n"]
