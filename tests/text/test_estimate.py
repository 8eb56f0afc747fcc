"""The estimate without a vocabulary is rarely below the real count, and not far above it in English and code."""

import base64
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.text.estimate import estimate_tokens
from daypack.text.tokens import counter_named
from tests.text.samples import SAMPLES

O200K = counter_named("o200k_base")
SHORTFALL = 0.05  # of texts of some length
SLACK = 4  # tokens, of short texts

MORE = {
    "ukrainian": "Запиши, будь ласка, простими словами, чому нічне завдання стало повільним, і додай цифри. " * 4,
    "greek": "Γράψε με απλά λόγια γιατί η νυχτερινή εργασία έγινε αργή και πρόσθεσε τους αριθμούς που είδες. " * 4,
    "hebrew": "כתוב במילים פשוטות למה המשימה הלילית נעשתה איטית והוסף את המספרים שראית. " * 4,
    "thai": "เขียนด้วยคำง่ายๆ ว่าทำไมงานกลางคืนจึงช้าลง และเพิ่มตัวเลขที่คุณเห็น " * 4,
    "vietnamese": "Hãy viết bằng lời đơn giản vì sao công việc ban đêm chậm đi và thêm các con số bạn đã thấy. " * 4,
    "polish": "Napisz prostymi słowami, dlaczego nocne zadanie zwolniło, i dodaj liczby, które zobaczyłeś. " * 4,
    "finnish": "Kirjoita yksinkertaisin sanoin, miksi yöllinen tehtävä hidastui, ja lisää näkemäsi luvut. " * 4,
    "turkish": "Gece görevinin neden yavaşladığını basit sözcüklerle yaz ve gördüğün sayıları ekle. " * 4,
    "tamil": "இரவுப் பணி ஏன் மெதுவாகியது என்பதை எளிய சொற்களில் எழுதி, பார்த்த எண்களைச் சேர்க்கவும். " * 4,
    "bengali": "রাতের কাজ কেন ধীর হয়ে গেল তা সহজ কথায় লিখুন এবং দেখা সংখ্যাগুলো যোগ করুন। " * 4,
    "traditional chinese": "請用簡單的話寫下夜間工作變慢的原因，並附上你看到的數字，讓下一個人不必從頭開始。" * 4,
    "markdown": "## Open\n\n- [ ] `make test` fails in **tests/api**: see `retry.py:12`\n- [x] ~~old~~\n\n---\n" * 6,
    "shell": "$ git diff --stat HEAD~3 -- src/ | sed -n '1,20p' && ls -la ~/.config/*.toml 2>/dev/null\n" * 6,
    "base64": base64.b64encode(random.Random(1).randbytes(1500)).decode(),
    "hexadecimal": random.Random(2).randbytes(900).hex(),
    "table": "| name | size | state |\n|------|-----:|-------|\n| alpha | 12,400 | done |\n" * 8,
}
TEXTS = {name: sample[0] for name, sample in SAMPLES.items()} | MORE


@pytest.mark.parametrize("name", TEXTS)
def test_an_estimate_is_at_most_a_few_percent_below_the_real_count(name: str) -> None:
    text = TEXTS[name]
    assert estimate_tokens(text) >= (1 - SHORTFALL) * O200K.count(text)


@pytest.mark.parametrize("name", ["english", "python", "javascript", "json", "japanese", "markdown", "base64"])
def test_an_estimate_of_english_and_code_is_at_most_half_as_much_again(name: str) -> None:
    assert estimate_tokens(TEXTS[name]) <= 1.5 * O200K.count(TEXTS[name])


@pytest.mark.parametrize("line", ["|------|-----:|-------|", "- [x] ~~old~~", "---", "* * *", "> ```"])
def test_lines_of_signs_are_estimated_as_high_however_many_there_are(line: str) -> None:
    for count in range(1, 40):
        text = "\n".join([line] * count)
        assert estimate_tokens(text) >= 0.93 * O200K.count(text) - SLACK


@given(st.lists(st.sampled_from([piece for text in TEXTS.values() for piece in text.splitlines()]), max_size=12))
def test_any_mixture_of_texts_is_estimated_as_high(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert estimate_tokens(text) >= 0.93 * O200K.count(text) - SLACK


@given(st.text(st.characters(exclude_categories=()), max_size=80))
def test_every_text_has_an_estimate(text: str) -> None:
    assert (estimate_tokens(text) > 0) == bool(text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_longer_text_never_costs_much_less(text: str, more: str) -> None:
    assert estimate_tokens(f"{text}\n{more}") >= 0.5 * estimate_tokens(text)


def test_a_run_of_letters_without_end_is_counted_by_its_length() -> None:
    assert estimate_tokens("a" * 100_000) >= O200K.count("a" * 100_000)


def test_the_estimate_needs_no_tokenizer() -> None:
    code = "import sys, daypack.text.estimate as e; e.estimate_tokens('Привет'); print('splintr' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
