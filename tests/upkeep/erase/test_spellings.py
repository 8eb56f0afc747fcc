"""Every spelling of a text in JSON and Unicode is found and replaced, at any depth."""

import json
import unicodedata
from base64 import b64encode, urlsafe_b64encode
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.upkeep.erase.spellings import Spellings

NormalForm = Literal["NFC", "NFD"]
NORMAL_FORMS: tuple[NormalForm, ...] = ("NFC", "NFD")
MARKER = "[erased:0]"
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=3, max_size=12).filter(lambda text: text.strip())


@given(TEXTS, st.integers(0, 4), st.booleans(), st.sampled_from(NORMAL_FORMS))
def test_a_text_is_found_however_often_it_is_escaped(text: str, depth: int, ascii_only: bool, form: NormalForm) -> None:
    spelled = unicodedata.normalize(form, text)
    for _ in range(depth):
        spelled = json.dumps(spelled, ensure_ascii=ascii_only)[1:-1]
    spellings = Spellings((text,))
    whole = f"before {spelled} after"
    assert spellings.found_in(whole.encode())
    assert spellings.replace(whole, MARKER) == f"before {MARKER} after"


@pytest.mark.parametrize("spelled", [r"caf\u00e9-key", r"caf\u00E9-key", r"caf\\u00e9\u002dkey", r"\u0063afé-key"])
def test_escapes_of_single_characters_are_found(spelled: str) -> None:
    assert Spellings(("café-key",)).replace(f"[{spelled}]", "X") == "[X]"


def test_other_texts_stay() -> None:
    spellings = Spellings(("hunter2",))
    assert spellings.replace("hunter, 2 hunters, HUNTER2", "X") == "hunter, 2 hunters, HUNTER2"


def test_the_longest_of_several_texts_is_replaced() -> None:
    assert Spellings(("the port", "the port of Kiel")).replace("the port of Kiel, the port", "X") == "X, X"


def test_digits_in_a_digest_are_not_the_secret() -> None:
    digest = "sha256:" + "482913ab" * 8
    assert Spellings(("482913",)).replace(f"{digest} 482913", "X") == f"{digest} X"


@pytest.mark.parametrize("before", range(4))
def test_encoded_spellings_are_found(before: int) -> None:
    text = "correct horse battery?>~"
    spellings = Spellings((text,))
    data = b"x" * before + text.encode() + b"yz"
    for encoded in (b64encode(data), urlsafe_b64encode(data), data.hex().encode()):
        assert spellings.encoded_in(encoded)
        assert not spellings.found_in(encoded)
    assert not spellings.encoded_in(b64encode(b"correct horse cattery?>~"))
