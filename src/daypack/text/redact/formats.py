"""Secret formats: their shapes, the names they are assigned to, and the patterns that find them.

Prefixes and lengths are those their issuers document, or that public scanners (gitleaks above all) agree on. Lengths
are open at the top where an issuer said that they may grow.

Every quantifier is bounded, and long ones are possessive (`{20,300}+`): they never give back what they took. A change
here that finds more or less needs a new `RULES_VERSION` in `redact.py`.
"""

import re
from functools import cache

_T = rb"[A-Za-z0-9_-]"
_END = rb"(?!\[redacted:)"  # a marker was part of the same word before it was redacted
_WORD_END = rb"(?![A-Za-z0-9_])"


def _free(anchor: bytes, word: bytes = rb"A-Za-z0-9") -> bytes:
    """A pattern for an anchor that begins a word; an escape sequence (backslash n, %22, a colour) is not part of one.

    The anchor comes first, followed by a lookbehind: a literal beginning makes the search fast.
    """
    before = (
        rb"(?<![\]" + word + rb"]",
        rb"(?<=\\[nrtbf]",
        rb"(?<=\\u[0-9A-Fa-f]{4}",
        rb"(?<=%[0-9A-Fa-f]{2}",
        rb"(?<=[\[;][0-9]m",
        rb"(?<=[\[;][0-9]{2}m",
    )
    return anchor + rb"(?:" + rb"|".join(look + anchor + rb")" for look in before) + rb")"


# Kind, anchors, pattern. Whether there is a match is asked first of the long words alone: runs of at least 20 letters,
# digits, `_` and `-`, with `REACH` characters before and all that follows up to a sign that is none of these or a dot.
# So a pattern has to match there too, and have one of its anchors there.
FORMATS: tuple[tuple[str, tuple[bytes, ...], bytes], ...] = (
    ("anthropic-key", (b"sk-ant-",), rb"sk-ant-" + _T + rb"{20,300}+"),
    (
        "openai-key",  # also OpenRouter, DeepSeek, Moonshot … with the same prefix
        (b"sk-",),
        _free(rb"sk-")
        + rb"(?:(?:proj|svcacct|admin|None|or-v1)-"
        + _T
        + rb"{20,300}+|(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{32,128}+)",
    ),
    (
        "daypack-token",  # of a memory server; letters of both cases, since a long name may begin with "dp_" too
        (b"dp_",),
        _free(rb"dp_") + rb"(?=[a-z0-9_-]{0,42}+[A-Z])(?=[A-Z0-9_-]{0,42}+[a-z])" + _T + rb"{43,64}+",
    ),
    ("github-token", (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"), rb"gh[pousr]_[A-Za-z0-9_]{36,251}+"),
    ("github-token", (b"github_pat_",), rb"github_pat_[A-Za-z0-9_]{36,251}+"),
    (
        "gitlab-token",
        (b"glpat-", b"gldt-", b"glrt-", b"glcbt-", b"glptt-", b"gloas-"),
        rb"gl(?:pat|dt|rt|cbt|ptt|oas)-" + _T + rb"{20,300}+(?:\.[0-9a-z]{2}\.?[0-9a-z]{7,9})?",
    ),
    (
        "slack-token",
        (b"xox",),
        rb"xox[abcdeoprs](?:\.xox[bp])?-(?=[A-Za-z-]{0,16}[0-9])[A-Za-z0-9-]{20,400}+",
    ),
    ("slack-token", (b"xapp-",), rb"xapp-[0-9]-[A-Z0-9]{8,16}-[0-9]{8,16}-[A-Za-z0-9]{32,128}+"),
    ("google-api-key", (b"AIza",), rb"AIza" + _T + rb"{35}(?!" + _T + rb")"),
    ("google-oauth", (b"ya29.",), rb"ya29\." + _T + rb"{20,2000}+"),
    ("google-oauth", (b"GOCSPX-",), rb"GOCSPX-" + _T + rb"{20,64}+"),
    ("google-oauth", (b"1//0",), rb"1//0" + _T + rb"{40,200}+"),
    ("stripe-key", (b"k_live_", b"k_test_"), rb"[sr]k_(?:live|test)_[A-Za-z0-9]{12,250}+"),
    ("sendgrid-key", (b"SG.",), rb"SG\." + _T + rb"{20,32}+\." + _T + rb"{32,64}+"),
    ("npm-token", (b"npm_",), rb"npm_[A-Za-z0-9]{36}" + _WORD_END),
    ("pypi-token", (b"pypi-AgE",), rb"pypi-AgE" + _T + rb"{50,1000}+"),
    ("huggingface-token", (b"hf_",), rb"hf_[A-Za-z0-9]{34,40}+" + _WORD_END),
    ("groq-key", (b"gsk_",), rb"gsk_[A-Za-z0-9]{48,56}+" + _WORD_END),
    ("xai-key", (b"xai-",), rb"xai-[A-Za-z0-9_]{70,90}+" + _WORD_END),
    ("perplexity-key", (b"pplx-",), rb"pplx-[A-Za-z0-9]{40,64}+" + _WORD_END),
    ("docker-token", (b"dckr_pat_",), rb"dckr_pat_" + _T + rb"{24,64}+"),
    ("digitalocean-token", (b"o_v1_", b"p_v1_", b"r_v1_"), rb"do[opr]_v1_[a-f0-9]{64}" + _WORD_END),
    ("databricks-token", (b"dapi",), rb"dapi[a-f0-9]{32}(?:-[0-9])?" + _WORD_END),
    ("vault-token", (b"hvs.", b"hvb."), rb"hv[sb]\." + _T + rb"{24,300}+"),
    ("age-secret-key", (b"AGE-SECRET-KEY-1",), rb"AGE-SECRET-KEY-1[A-Z0-9]{58}" + _WORD_END),
    ("aws-access-key", (b"AKIA",), _free(rb"AKIA") + rb"[A-Z0-9]{16}" + _WORD_END),
    ("aws-access-key", (b"ASIA",), _free(rb"ASIA") + rb"[A-Z0-9]{16}" + _WORD_END),
    ("twilio-key", (b"SK",), _free(rb"SK") + rb"[a-f0-9]{32}" + _WORD_END),
    ("telegram-token", (b":AA",), rb"[0-9](?<![0-9\]][0-9])[0-9]{7,9}+:AA" + _T + rb"{32,33}+(?!" + _T + rb")"),
    (
        "private-key",  # a PEM file in base64, as in Kubernetes; its label is one of a key, not of a certificate
        (b"LS0tLS1CRUdJTiB",),
        rb"LS0tLS1CRUdJTiB(?:SU0Eg|QUklW|FQyBQ|PUEVO|FTkNS|EU0Eg)[A-Za-z0-9+/]{16,40000}+={0,2}+",
    ),
    (
        "jwt",  # a start must follow something that cannot be in a part: else every start would read the rest again
        (b"eyJ",),
        _free(rb"eyJ", rb"A-Za-z0-9_-") + _T + rb"{17,8000}+\." + _T + rb"{16,16000}+\." + _T + rb"{16,2000}+",
    ),
)
# How long words are looked for: `RUN` in the text as `SHAPE` shows it, but for those that are not `mixed`.
LAST_CHARS = frozenset(anchor[-1] for _, anchors, _ in FORMATS for anchor in anchors)
RUN = b"a" * 20
REACH = 12
SHAPE = bytes(
    b"a. "[0 if chr(at).isascii() and (chr(at).isalnum() or chr(at) in "_-") else 1 + (at != 46)] for at in range(256)
)
DISCORD_SHAPE = b".aaaaaa." + b"a" * 27

# Secrets in the path of a URL, looked for in the whole text: what is before them is no run.
HOOKS = (
    (
        "slack-webhook",
        b"hooks.slack.com/",
        rb"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9_+/-]{30,200}+)",
    ),
    ("discord-webhook", b"/webhooks/", rb"/webhooks/[0-9]{17,20}/(" + _T + rb"{60,100}+)"),
)

# The ends of names that secrets are assigned to, and how long a value must be to be taken for one.
NAMES = (
    ("password", b"pass", 8),
    ("password", b"pwd", 8),
    ("secret", b"secret", 16),
    ("token", b"token", 16),
    ("api-key", b"key", 16),
)
# Whose key it is, since most keys are those of a dictionary.
OWNERS = tuple(
    b"api access secret private auth account encryption signing storage master service "
    b"openai azure search admin app client subscription hmac jwt".split()
)
DATABASES = tuple(b"postgres postgresql mysql mariadb mongodb redis rediss amqp amqps mssql oracle".split())
NO_PASSWORDS = frozenset(b"password passwd pass pwd passw secret token user username key apikey pw p".split())

# Every kind there is. Where two rules want the same characters, the earlier kind names them.
KINDS = tuple(
    dict.fromkeys(
        (
            "private-key",
            *(kind for kind, _, _ in (*FORMATS, *HOOKS)),
            *("discord-token", "aws-secret-key", "azure-key", "database-url", "url-password", "authorization"),
            *("password", "api-key", "secret", "token"),
        )
    )
)

_STOP = rb"\s\"'`\\,;()\[\]{}<>"  # ends a value
_AFTER = rb"(?=[\s\"'`\\,;)}\]<]|\Z)"  # a bracket that opens may be a marker, a call or an index: no value then
_PARAMETER = rb"&[A-Za-z0-9_.-]{1,40}+="
_QUOTES = rb"[\"'`\\]{0,4}+"
_LABEL = rb"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_QUOTED = rb"(?:[^\s\"'`\\\[]|\[(?!redacted:)){4,1500}+"
# A value without quotes holds nothing that could come after a name: a text full of names and signs is then not read
# again from each of them.
_BARE = rb"[^" + _STOP + rb"&:=]{4,1500}+(?:(?!" + _PARAMETER + rb")&[^" + _STOP + rb":=]{0,200}+)?+={0,2}+"
_DISCORD = _T + rb"{23,27}+\." + _T + rb"{6}\." + _T + rb"{27,40}+"
PATTERNS = {
    "discord-token": _free(rb"[MNO]", rb"A-Za-z0-9_-") + _DISCORD + _END,
    "assigned": rb"(?i:w(?:or)?d|phrase)?(?:[_-][A-Za-z0-9]{1,16}+)?"
    + _QUOTES
    + rb"[ \t]{0,8}+(?:: ?(?:str|bytes|[sS]tring|SecretStr)[ \t]{1,4}+)?(=>|:=|={1,3}+|:|>|(?<=[ \t]))[ \t]{0,8}+"
    + rb"(?:[bru](?=[\"']))?"
    + _QUOTES
    + (rb"(?:(?<=[\"'`])(" + _QUOTED + rb")(?=[\s\"'`\\]|\Z)")
    + (rb"|(?<![\"'`])(" + _BARE + rb")(?:" + _AFTER + rb"|(?=" + _PARAMETER + rb")))"),
    "authorized": _QUOTES
    + rb"[ \t]{0,4}+[:=,][ \t]{0,4}+"
    + _QUOTES
    + rb"(?:(?i:bearer|(basic)|token|bot|apikey)[ \t]{1,4}+)?([A-Za-z0-9._~+/-]{8,4000}+={0,2}+)"
    + _AFTER,
    "url": rb"://([^\s/?#@:\"'`\\<>\[\]{}|^]{0,100}+):([^\s/?#@\"'`\\<>\[\]{}|^]{4,200}+)@",
    "begin": rb"-----BEGIN " + _LABEL,
    "end": rb"-----END " + _LABEL,
    "header": rb"(?:[\r\n \\]|(?<=\\)[nr]){0,16}+(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\r\n\\]{0,99}+",
    "line": rb"(?:[\s\"'`,>|\\]|(?<=\\)[nrt]){0,24}+([A-Za-z0-9+/]{1,200}+={0,2}+)",
    "cut": rb"[\r\n\"'`\\?]|\.{3}|\Z",
    "lines": rb"[A-Za-z0-9+/=]{40,200}+",
    "switch": rb"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])",
    "placeholder": rb"(?i:example|your|x{4}|placeholder|change.?me|dummy|redacted|insert|replace|sample"
    rb"|\*{3}|\.{3}|123456789|abcdefgh|%s|\A\$[a-z_]|\A%[a-z_]{1,64}+%\Z"
    rb"|\{[^{}]{0,99}+\}|<[^<>]{0,99}+>|%\()",
    "ordinary": rb"(?i:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z|(?:sha[0-9]{1,3}+|md5)[:-]"
    rb"|[a-z][a-z0-9+.-]{1,16}+:|~/)|[.]{0,2}/[a-z0-9_.-]{2,60}+/",
    "mixed": rb"[^a-z_.-]",
    "constant": rb"[A-Z_]{1,200}+\Z",
    "symbol": rb".[!@#^~$&]",
    "aws": rb"[A-Za-z0-9/+]{40}\Z",
    "azure": rb"[A-Za-z0-9+/]{43,86}+={1,2}+\Z",
}


@cache
def pattern_of(name_or_pattern: str | bytes) -> re.Pattern[bytes]:
    """Return a named pattern, or that of a format, compiled."""
    # Compiled when first needed: all together they cost as much as the start of a hook, and few are ever used in one.
    pattern = PATTERNS[name_or_pattern] if isinstance(name_or_pattern, str) else name_or_pattern + _END
    return re.compile(pattern)
