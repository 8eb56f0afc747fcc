"""Secrets of every kind leave no character behind, wherever they stand; what only looks like one stays."""

import json
import random
import re
import string
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daypack.text.redact.formats import KINDS
from daypack.text.redact.redact import RULES_VERSION, Redacted, redact, redact_value

ALPHABETS = {
    "W": string.ascii_letters + string.digits,
    "T": string.ascii_letters + string.digits + "_-",
    "B": string.ascii_letters + string.digits + "+/",
    "H": "0123456789abcdef",
    "U": string.ascii_uppercase + string.digits,
    "L": string.ascii_letters,
    "D": string.digits,
    "P": string.ascii_letters + string.digits * 2 + "!@#^~",
}
# Kind, then where it stands, the secret between « and »; {36:W} is 36 random characters of an alphabet.
TEMPLATES = [
    ("aws-access-key", "«AKIA{16:U}»"),
    ("aws-access-key", "«ASIA{16:U}»"),
    ("aws-secret-key", "aws_secret_access_key = «{40:B}»"),
    ("aws-secret-key", '"SecretAccessKey": "«{40:B}»"'),
    ("daypack-token", "«dp_{43:T}»"),
    ("daypack-token", "DAYPACK_TOKEN=«dp_{43:T}» daypack memory list"),
    ("github-token", "«ghp_{36:W}»"),
    ("github-token", "«gho_{36:W}»"),
    ("github-token", "«ghu_{36:W}»"),
    ("github-token", "«ghs_{36:W}»"),
    ("github-token", "«ghr_{76:W}»"),
    ("github-token", "«github_pat_{22:W}_{59:W}»"),
    ("gitlab-token", "«glpat-{20:T}»"),
    ("gitlab-token", "«glpat-{40:T}.01.{9:H}»"),
    ("gitlab-token", "«glrt-{20:T}»"),
    ("slack-token", "«xoxb-{12:D}-{12:D}-{24:W}»"),
    ("slack-token", "«xoxp-{12:D}-{12:D}-{12:D}-{32:H}»"),
    ("slack-token", "«xapp-1-{11:U}-{13:D}-{64:H}»"),
    ("slack-webhook", "https://hooks.slack.com/services/«T{8:U}/B{10:U}/{24:W}»"),
    ("openai-key", "«sk-{20:W}T3BlbkFJ{20:W}»"),
    ("openai-key", "«sk-proj-{74:T}T3BlbkFJ{74:T}»"),
    ("openai-key", "«sk-svcacct-{58:T}T3BlbkFJ{58:T}»"),
    ("openai-key", "«sk-or-v1-{64:H}»"),
    ("openai-key", "«sk-{32:H}»"),
    ("anthropic-key", "«sk-ant-api03-{93:T}AA»"),
    ("google-api-key", "«AIza{35:T}»"),
    ("google-oauth", "«ya29.a0{120:T}»"),
    ("google-oauth", "«GOCSPX-{28:T}»"),
    ("google-oauth", "«1//0{60:T}»"),
    ("stripe-key", "«sk_live_{24:W}»"),
    ("stripe-key", "«rk_live_{99:W}»"),
    ("twilio-key", "«SK{32:H}»"),
    ("sendgrid-key", "«SG.{22:T}.{43:T}»"),
    ("npm-token", "«npm_{36:W}»"),
    ("pypi-token", "«pypi-AgEIcHlwaS5vcmc{120:T}»"),
    ("huggingface-token", "«hf_{34:L}»"),
    ("groq-key", "«gsk_{52:W}»"),
    ("xai-key", "«xai-{80:W}»"),
    ("perplexity-key", "«pplx-{48:W}»"),
    ("docker-token", "«dckr_pat_{27:T}»"),
    ("azure-key", "AccountName=box;AccountKey=«{86:B}==»;EndpointSuffix=core.windows.net"),
    ("azure-key", "SharedAccessKeyName=root;SharedAccessKey=«{43:B}=»"),
    ("jwt", "«eyJhbGciOiJIUzI1NiJ9.eyJ{40:T}.{43:T}»"),
    ("jwt", "«eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJ{900:T}.{342:T}»"),
    ("private-key", "«-----BEGIN RSA PRIVATE KEY-----\n{64:B}\n{64:B}\n{30:B}==\n-----END RSA PRIVATE KEY-----»"),
    ("private-key", "«-----BEGIN PRIVATE KEY-----\\n{64:B}\\n{64:B}\\n-----END PRIVATE KEY-----»\\n"),
    ("private-key", "«-----BEGIN OPENSSH PRIVATE KEY-----\n{70:B}\n{70:B}\n{70:B}»\n... output cut"),
    (
        "private-key",
        "«-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{32:H}\n\n{64:B}\n{64:B}»\n",
    ),
    (
        "private-key",
        "«-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 2\n\n{64:B}\n={4:B}\n-----END PGP PRIVATE KEY BLOCK-----»",
    ),
    ("private-key", "client-key-data: «LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ{400:B}==»"),
    ("url-password", "https://deploy:«{12:W}»@git.acme.dev/x.git"),
    ("database-url", "postgresql+psycopg://app:«{20:W}»@db.internal:5432/app"),
    ("database-url", "mongodb+srv://app:«{20:W}»@cluster0.mongodb.net"),
    ("database-url", "redis://:«{20:W}»@cache:6379/0"),
    ("authorization", "Authorization: Bearer «{40:W}»"),
    ("authorization", "curl -H 'Authorization: Basic «dXNlcjp{20:W}»' https://acme.dev"),
    ("authorization", '{{"authorization": "Bearer «{32:H}»"}}'),
    ("password", 'password = "«{16:P}»"'),
    ("password", "export DB_PASSWORD=«{20:W}»"),
    ("password", "Server=db;Uid=app;Pwd=«{20:W}»;Database=x"),
    ("password", "password: «Summer{4:D}!»"),
    ("password", "machine acme.dev login ci password «{20:W}»"),
    ("password", '"password": "«{10:W}1a2B,([x])<;{6:W}»"'),
    ("secret", "client_secret=«{32:W}»&grant_type=x"),
    ("secret", "<client-secret>«{40:H}»</client-secret>"),
    ("token", "auth_token: «{32:H}»"),
    ("token", "deploy --token «{40:W}» --force"),
    ("token", 'token: str = "«{40:W}»"'),
    ("api-key", "X-Api-Key: «{32:W}»"),
    ("api-key", 'apiKey: "«{40:W}»",'),
    ("api-key", "ACME_API_KEY=«{32:W}»"),
    ("telegram-token", "https://api.telegram.org/bot«{10:D}:AA{33:T}»/getMe"),
    ("discord-token", "«MTE{21:W}.G{5:W}.{38:T}»"),
    ("discord-webhook", "https://discord.com/api/webhooks/{18:D}/«{68:T}»"),
    ("digitalocean-token", "«dop_v1_{64:H}»"),
    ("databricks-token", "«dapi{32:H}»"),
    ("vault-token", "«hvs.{24:T}»"),
    ("vault-token", "«hvs.CAES{91:T}»"),
    ("age-secret-key", "«AGE-SECRET-KEY-1{58:U}»"),
]
NAMES = [f"{kind}-{number}" for number, (kind, _) in enumerate(TEMPLATES)]


def fill(template: str, seed: int) -> tuple[str, str, str]:
    """What stands before a secret, the secret, what stands after it."""
    chance = random.Random(seed)

    def pick(field: re.Match[str]) -> str:
        return "".join(chance.choices(ALPHABETS[field[2]], k=int(field[1])))

    text = re.sub(r"\{(\d+):([A-Z])\}", pick, template).replace("{{", "{").replace("}}", "}")
    before, _, rest = text.partition("«")
    secret, _, after = rest.partition("»")
    return before, secret, after


def looks_made_up(secret: str) -> bool:
    """Random characters that spell a placeholder: one in some ten thousand, and meant to stay."""
    return bool(re.search(r"your|x{4}|dummy|%s", secret, re.IGNORECASE))


@pytest.mark.parametrize(("kind", "template"), TEMPLATES, ids=NAMES)
def test_a_secret_is_replaced_whole_and_what_is_around_it_stays(kind: str, template: str) -> None:
    missed = 0
    for seed in range(60):
        before, secret, after = fill(template, seed)
        found = redact(f"See {before}{secret}{after} please.")
        missed += found != Redacted(f"See {before}[redacted:{kind}]{after} please.", (kind,))
    # A name with a value needs a value that looks random: one of forty does not, by chance. Formats miss none.
    assert missed <= (3 if kind in {"password", "secret", "token", "api-key", "authorization"} else 0)


@pytest.mark.parametrize(("kind", "template"), TEMPLATES, ids=NAMES)
def test_a_secret_is_found_inside_json_text(kind: str, template: str) -> None:
    before, secret, after = fill(template, 7)
    once = json.dumps({"command": f"a\n{before}{secret}{after}\nb", "other": [f"\t{before}{secret}{after}"]})
    twice = json.dumps({"arguments": once})
    for text in (once, twice):
        found = redact(text)
        assert found.kinds == (kind,)
        assert found.text.count(f"[redacted:{kind}]") == 2
        json.loads(found.text)
    assert json.loads(redact(once).text)["command"].startswith("a\n")


@pytest.mark.parametrize(("kind", "template"), TEMPLATES, ids=NAMES)
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32), before=st.text(max_size=60), after=st.text(max_size=60))
def test_no_random_secret_survives_in_random_text(kind: str, template: str, seed: int, before: str, after: str) -> None:
    context, secret, rest = fill(template, seed)
    found = redact(f"{before}\n{context}{secret}{rest}\n{after}")
    if kind in found.kinds:
        assert secret not in found.text
        assert f"[redacted:{kind}]" in found.text
    else:  # by chance it did not look random, or it spelled a placeholder
        assert kind in {"password", "secret", "token", "api-key", "authorization"} or looks_made_up(secret)


STAYS = [
    "The risk-based inputs-review task-force asked for disk-encryption and ask-me-anything sessions.",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "id: 550e8400-e29b-41d4-a716-446655440000 token=550e8400-e29b-41d4-a716-446655440000",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    '"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="',
    "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" * 9,
    "/usr/lib/python3.11/site-packages/some_package/a_module_with_a_long_name_2.py",
    "class AbstractSingletonProxyFactoryBeanConfiguration2Test: pass",
    'password=os.environ["DB_PASSWORD_2"]',
    "password=getpass.getpass('Password: ')",
    "def login(token: str, password: str | None = None, secret: bytes = b'') -> None:",
    "token: Optional[AccessToken2] = field(default=None)",
    "private_key: PKCS7PrivateKeyTypes",
    "max_tokens=4096, tokens: 12345678, token_count=1234567890123456",
    "api_key=YOUR_API_KEY_1a2B3c4D password=<password> token=${TOKEN} secret=$SECRET_1A2B3C4D5E6F token={{token_1A2b}}",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx sk-... sk-ant-...",
    "AKIAIOSFODNN7EXAMPLE aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    "postgres://user:password@localhost/db mysql://root:root@db redis://:${PASS}@h http://u:%s@h amqp://a:DB_PASS@h",
    "http://localhost:8080/a@b https://example.org:8443@x ssh://git@github.com:22/x.git mailto:a@b.c",
    "Authorization: Bearer <token>, Authorization: Bearer $TOKEN, Authorization: Bearer YOUR_TOKEN_HERE_1A2B3C",
    "authorization: Basic authentication is not enough; bearer tokens are better",
    "if line.startswith('-----BEGIN RSA PRIVATE KEY-----') and '-----END RSA PRIVATE KEY-----' in text: load(text)",
    "certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1J" + "SUJrVENCK3dJSkFNd1Z4" * 9,
    "a file that begins with -----BEGIN PRIVATE KEY----- is a key, see documentation of OpenSSL",
    "-----BEGIN CERTIFICATE-----\n" + "MIIBszCCAVmgAwIBAgIUQ29udGVudE9mQW5FeGFtcGxlQ2VydGlmaWNhdGUwCgYI\n" * 3,
    'secret = "correct horse battery staple"; passphrase: the name of my first pet',
    'token = "2024-11-05T10:20:30Z"; api_key: "claude-3-5-sonnet-20241022"; model_token="Qwen2.5-7B-Instruct-Q4_K_M"',
    "eyJhbGciOiJIUzI1NiJ9 is only the head of one, and a.b.c.d.e is none",
    "ASIAPACIFICREGIONSWEST and SKILLS and SKETCH and https://sk-sk.acme.dev/sk-SK/",
    "The pass rate rose. Pass the key: it is under the mat. Secret: nothing.",
]


@pytest.mark.parametrize("text", STAYS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text).text == text
    assert redact(text).kinds == ()


def test_text_without_secrets_is_the_same_object() -> None:
    for text in ("", "plain", "a" * 10_000, "中文 " * 50, "token and key and password: none"):
        assert redact(text).text is text


@given(st.text())
def test_any_text_can_be_redacted_even_with_lone_surrogates(text: str) -> None:
    for one in (text, f"\ud800{text}\udfff", f"password='{text}\ud83d'", f"-----BEGIN PRIVATE KEY-----{text}"):
        redact(one)


def test_characters_that_are_not_ascii_keep_their_places() -> None:
    key = "ghp_" + "0aB1" * 9
    assert redact(f"schlüssel 🔑: {key} \ud800 密钥").text == "schlüssel 🔑: [redacted:github-token] \ud800 密钥"
    assert redact("password='pä55wörd🔑X1y2'").text == "password='[redacted:password]'"


PIECES = st.one_of(
    st.sampled_from(
        ["sk-", "sk-proj-", "ghp_", "eyJ", "AKIA", "SK", "1//0", "xoxb-1", "%22", "\\n", "\\u000a", "\x1b[32m"]
    ),
    st.sampled_from(["password=", "token:", "secret='", "--api-key ", "Authorization: Bearer ", "://", "user:", "@"]),
    st.sampled_from(["[", "]", "[redacted:jwt]", "[redacted:", ".", ":", "=", "&", '"', "'", "<", ">", "\n", " ", "-"]),
    st.sampled_from(["-----BEGIN ", "PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"]),
    st.sampled_from([17, 20, 32, 36, 40, 64, 300, 2000]).map(lambda size: fill(f"«{{{size}:T}}»", size)[1]),
    st.tuples(st.sampled_from(TEMPLATES), st.integers(0, 3)).map(lambda it: fill(it[0][1], it[1])[1]),
    st.tuples(st.sampled_from(TEMPLATES), st.integers(0, 3)).map(lambda it: "".join(fill(it[0][1], it[1]))),
    st.text(max_size=4),
)


@settings(max_examples=200)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_redacted_text_is_left_as_it_is(text: str) -> None:
    once = redact(text)
    assert redact(once.text) == Redacted(once.text, ())


@pytest.mark.parametrize(
    "text",
    [
        "ghp_" + ("aB3d" * 63)[:251] + "AKIA2E0A8F3B244C9986",  # a word begins where the longest token ended
        "token=w7IyOeWWqEkeYoHYGrrVpr7&-----BEGIN PRIVATE KEY-----\n" + "JWV3s9KVW7rxTLWx" * 4,
        "secret='sk-proj-b4e91c31f89139f0<61xoxb-163144442263-678922752688-nsa8nTHKGZLshD5jQNjmQBzD{'",
        "-----BEGIN PRIVATE KEY-----rghs_" + "76dfZTPt" * 5 + "=xoS1/Dr9S2UpJ " * 9 + "-----END PRIVATE KEY-----",
    ],
)
def test_what_a_marker_cut_off_is_no_new_secret(text: str) -> None:
    once = redact(text).text
    assert "[redacted:" in once
    assert redact(once).text == once


def test_a_key_that_was_cut_off_does_not_reach_to_the_next_one() -> None:
    line = "MIIEpAIBAAKCAQEA1c7" + "aB3dE6gH9" * 5
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    text = f"{begin}\n{line}\n{line}\n... cut; the other one:\n{begin}\n{line}\n{line}\n{line}\n{line}\n{end}\nend"
    assert redact(text).text == "[redacted:private-key]\n... cut; the other one:\n[redacted:private-key]\nend"
    assert redact(f"{begin}\n{line}\n{line[:30]}...").text == "[redacted:private-key]..."
    assert redact(f"{begin}\n{line}\n\nsha256 of it").text == "[redacted:private-key]\n\nsha256 of it"


@settings(max_examples=300)
@given(seed=st.integers(0, 99), template=st.sampled_from(TEMPLATES), around=st.tuples(*[st.sampled_from(STAYS)] * 2))
def test_ordinary_text_around_a_secret_changes_nothing(
    seed: int, template: tuple[str, str], around: tuple[str, str]
) -> None:
    text = "".join(fill(template[1], seed))
    assert redact(f"{around[0]}\n{text}\n{around[1]}").text == f"{around[0]}\n{redact(text).text}\n{around[1]}"


@pytest.mark.parametrize(
    "before", ["\\n", "\\t", '\\"', "\\u0022", "%22", "=", "'", "(", "\x1b[32m", "\x1b[1;31m", "中"]
)
@pytest.mark.parametrize("secret", ["sk-proj-" + "a1B2" * 10, "AKIA2E0A8F3B244C9986", "SK" + "0a1b" * 8])
def test_an_escape_before_a_secret_is_not_part_of_its_word(before: str, secret: str) -> None:
    assert redact(f"x{before}{secret}").text == re.sub("sk-.*|AKIA.*|SK.*", "[redacted:", f"x{before}{secret}") + (
        redact(secret).kinds[0] + "]"
    )


def test_one_secret_found_by_two_rules_has_the_name_of_the_closer_one() -> None:
    key = "glpat-" + "aB3dE6gH9k" * 2
    assert redact(f"https://oauth2:{key}@gitlab.com").text == "https://oauth2:[redacted:gitlab-token]@gitlab.com"
    assert redact(f"GITLAB_TOKEN={key}").kinds == ("gitlab-token",)
    assert redact(f"Authorization: Bearer {key}").kinds == ("gitlab-token",)


def test_several_secrets_are_named_sorted_and_once() -> None:
    texts = ["".join(fill(template, 1)) for _, template in TEMPLATES]
    found = redact("\n".join(texts))
    assert set(found.kinds) == set(KINDS) == {kind for kind, _ in TEMPLATES}
    assert list(found.kinds) == sorted(set(found.kinds))


def test_values_are_redacted_inside_and_keep_their_structure() -> None:
    key = "ghp_" + "0aB1" * 9
    value: dict[str, Any] = {
        "cmd": ["echo", f"--x={key}"],
        key: 1,
        "password": "k3Jx9QpL2m",
        "headers": {"Authorization": "Basic dXNlcjpwYXNzd29yZA=="},
        "n": [1, 2.5, None, True],
        "note": "nothing",
    }
    redacted, kinds = redact_value(value)
    assert redacted == {
        "cmd": ["echo", "--x=[redacted:github-token]"],
        key: 1,
        "password": "[redacted:password]",
        "headers": {"Authorization": "Basic [redacted:authorization]"},
        "n": [1, 2.5, None, True],
        "note": "nothing",
    }
    assert kinds == ("authorization", "github-token", "password")
    assert value["cmd"][1] == f"--x={key}"
    assert redact_value(redacted) == (redacted, ())
    assert redact_value(key) == ("[redacted:github-token]", ("github-token",))
    assert redact_value(7) == (7, ())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | PIECES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PIECES | st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_values_without_secrets_are_equal_and_redacted_ones_stay(value: Any) -> None:
    redacted, kinds = redact_value(value)
    assert (redacted == value) is (kinds == ())
    assert redact_value(redacted) == (redacted, ())


def steps(text: str) -> int:
    """How many calls, Python's and C's, redacting a text makes."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        redact(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "unit",
    ["eyJ", " eyJ", "sk-", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "a.", "://:@", "password=", "token:'", "key",
     "Authorization: ", "A1b2C3d4E5f6G7h8I9j0 ", "ghp_" + "0aB1" * 9 + " ", "token=A1b2C3d4E5f6G7h8 "],
)  # fmt: skip
def test_the_number_of_steps_grows_no_faster_than_hostile_text(unit: str) -> None:
    small, large = steps(unit * 500), steps(unit * 2000)
    assert large <= 4 * small + 100


def test_a_result_can_say_by_which_rules_it_was_made() -> None:
    assert RULES_VERSION == "2"
