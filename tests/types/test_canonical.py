"""The canonical form of JSON values: what RFC 8785 says, and the same however a document is written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.types.canonical import canonical, digest_json

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


SAMPLES: list[tuple[Any, str]] = [
    # The number samples of RFC 8785, appendix B.
    (0.0, "0"),
    (-0.0, "0"),
    (5e-324, "5e-324"),
    (-5e-324, "-5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
    (9007199254740992, "9007199254740992"),
    (-9007199254740992, "-9007199254740992"),
    (295147905179352830000.0, "295147905179352830000"),
    (9.999999999999997e22, "9.999999999999997e+22"),
    (1e23, "1e+23"),
    (999999999999999700000.0, "999999999999999700000"),
    (1e21, "1e+21"),
    (0.000001, "0.000001"),
    (9.999999999999997e-7, "9.999999999999997e-7"),
    (333333333.33333325, "333333333.33333325"),
    (1424953923781206.2, "1424953923781206.2"),
    (1.0, "1"),
    (2**53 + 1, "9007199254740992"),
    (10**22, "1e+22"),
    (True, "true"),
    (None, "null"),
    ([], "[]"),
    ({}, "{}"),
    ([56, {"d": True, "10": None, "1": []}], '[56,{"1":[],"10":null,"d":true}]'),
    ('€$\u000f\nA\'B"\\"/\u007f', '"€$\\u000f\\nA\'B\\"\\\\\\"/\u007f"'),
]


@pytest.mark.parametrize(("value", "text"), SAMPLES)
def test_values_are_written_as_the_standard_says(value: object, text: str) -> None:
    assert canonical(value) == text.encode()


def test_keys_are_sorted_by_utf_16_code_units() -> None:
    # The sample of RFC 8785, section 3.2.3.
    names = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    written = canonical(dict.fromkeys(reversed(names), 0))
    assert list(json.loads(written)) == names


@given(json_values)
def test_the_form_does_not_depend_on_how_a_document_is_written(value: Any) -> None:
    try:
        form = canonical(value)
    except ValueError:
        return  # a whole number beyond every double
    assert canonical(json.loads(form)) == form
    assert canonical(json.loads(json.dumps(value, indent=3, ensure_ascii=True))) == form


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, {"x": object()}, b"x", {"x": {1}}])
def test_what_json_cannot_express_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"not a JSON value|too large"):
        canonical(value)


def test_a_digest_names_its_algorithm() -> None:
    assert digest_json({}) == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
