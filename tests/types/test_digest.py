"""Two spellings for digests, both read everywhere."""

import subprocess
import sys

import pytest

from daypack.errors import BadSource
from daypack.types.digest import digest_of, file_name_of


@pytest.mark.requirement("X24")
def test_digests_have_one_spelling_in_fields_and_one_in_file_names_and_both_are_read() -> None:
    digits = "0123456789abcdef" * 4
    for spelling in (f"sha256:{digits}", f"sha256-{digits}"):
        assert digest_of(spelling) == f"sha256:{digits}"
        assert file_name_of(spelling) == f"sha256-{digits}"
    for wrong in ("sha256-abc", f"sha1:{digits}", digits, f"sha256:{digits.upper()}", f"sha256:{digits}0"):
        with pytest.raises(BadSource):
            digest_of(wrong)


def test_a_digest_is_the_same_before_and_after_openssl_is_loaded() -> None:
    code = (
        "import sys; from daypack.types.digest import digest_bytes as digest; small, large = b'a' * 4096, b'a' * 4097;"
        "first = digest(b''), digest(small); assert 'hashlib' not in sys.modules; second = digest(large);"
        "import hashlib; expected = ['sha256:' + hashlib.sha256(data).hexdigest() for data in (b'', small, large)];"
        "assert [*first, second] == expected == [digest(data) for data in (b'', small, large)]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
