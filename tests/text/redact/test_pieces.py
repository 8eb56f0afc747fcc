"""A long text is searched in pieces: what is found does not depend on where it is cut."""

import random

import pytest

from daypack.text.redact import pieces, redact

_KEY = "MIIEpAIBAAKCAQEAaB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX2yZ3aB4cD5eF6"
_WORDS = (
    *("password", "token", "key", "secret", "login", "access_key", "--password", "authorization", "Bearer"),
    *("sql+", "mongodb+", "https://ada:Pa55w0rd!x@host", "Summer2024!x", "abcdEF1234567890abcd", "é", "plain", _KEY),
    *("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"),
    *("ghp_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX2", "sk-" + 40 * "a", "sk-proj-aB1cD2eF3gH4iJ5kL6mN7oP8"),
)
_BETWEEN = (" ", "\n", "  ", "\n\n", ": ", " = ", "=", ': "', '"\n')


@pytest.mark.parametrize("piece_chars", [20, 60, 400])
def test_a_text_in_pieces_has_the_same_secrets(piece_chars: int, monkeypatch: pytest.MonkeyPatch):
    chance = random.Random(piece_chars)
    texts = [
        "".join(chance.choice(_WORDS) + chance.choice(_BETWEEN) for _ in range(chance.randint(5, 120)))
        for _ in range(300)
    ]
    whole = [redact.redact(text) for text in texts]
    for module in (pieces, redact):
        monkeypatch.setattr(module, "PIECE_CHARS", piece_chars)
    assert [redact.redact(text) for text in texts] == whole
    assert ["".join(piece for _, piece in pieces.pieces(text)) for text in texts] == texts
    assert sum(len(list(pieces.pieces(text))) > 1 for text in texts) > 50
    assert sum(bool(found.kinds) for found in whole) > 200


def test_a_key_block_is_never_cut():
    block = "-----BEGIN RSA PRIVATE KEY-----\n" + f"{_KEY}\n" * 200 + "-----END RSA PRIVATE KEY-----\n"
    text = "x " * ((pieces.PIECE_CHARS - 6_000) // 2) + block + "some words\n" * 100_000
    assert len(list(pieces.pieces(text))) > 1
    assert redact.redact(text).text == text.replace(block.rstrip("\n"), "[redacted:private-key]")
