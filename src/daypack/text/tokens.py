"""Token counts: exact, offline, where a model's vocabulary is public; elsewhere an upper estimate with a stated error.

A count means nothing without its method, so each counter has a `name` to record beside its counts,
and `counter_named` gives the same counter back. Special tokens spelled out in a text are ordinary text here.

What the estimates are worth:

- An estimate adds up the o200k_base count and the numbers of characters, digits, capital letters and non-ASCII
  characters of four kinds, each with its own weight: that is where vocabularies differ from each other.
- The weights were fitted to about 1,300 texts of 2,400 characters and checked with 250 more, of 137 kinds: prose in
  more than 50 languages, code in 6, JSON, HTML, SQL, diffs, paths, logs of 16 programs, digests, numbers, emoji.
- `any` was held against 14 vocabularies of 100,000 tokens and more (OpenAI, Llama 3 and 4, Qwen, GLM, Kimi, DeepSeek,
  Mistral, Gemma 2 to 4, Phi 4, OLMo 2), `gemini` against Gemma 3 and 4, which Google's own client counts Gemini with,
  the two `claude` rows against a public reconstruction of Anthropic's counts (Claude 3 to 4.6, and 4.7 onwards).

               stated  worst shortfall measured              mean overshoot: English  Python  Chinese
    any          25 %  20 % (C headers as Gemma 3 counts)                      +18 %   +18 %    +44 %
    gemini       15 %  10 % (JSON, paths)                                      +20 %   +17 %    +50 %
    claude3      25 %  22 % (Indonesian, Kannada, C headers)                   +20 %   +11 %     +6 %
    claude4.7    25 %  22 % (German, Indonesian)                               +21 %   +15 %     +1 %

- `any` pays for that in scripts some vocabularies spell byte by byte: it counts Russian 2.2 and Hindi 3.9 times.
- The stated bound covers sums and texts from about 2,000 characters on. One shorter text alone may miss by up to
  `SHORT_TEXT_SLACK` tokens more; such misses even out in a sum.
- Not covered: vocabularies of 32,000 to 65,000 tokens under an unknown name (up to 50 % short: Korean in Llama 2's, for
  which there is an exact counter), and Claude 1 and 2, retired (46 %, Greek). A new family may be worse than these
  14: fitted without it, each of them stayed within 25 %, but for Mistral's on bare emoji (43 %).
"""

import re
from collections.abc import Callable, Iterator
from typing import cast

import msgspec

from daypack.errors import BadConfig, DaypackError
from daypack.forks import ThreadLock, forks
from daypack.types.history import Image, Message, Other, Part, Text, Thinking

# A document, sound or film that is sent whole: its pages and seconds are not known. More than a dense page that is sent
# as text and picture. A file of many pages costs more: a caller that sends its text counts that text.
MEDIA_TOKENS = 5_000

# What providers call documents and sound in their own shapes.
_MEDIA_TYPES = frozenset({"file", "input_file", "document", "audio", "input_audio", "video"})

SHORT_TEXT_SLACK = 8

# Which models a counter is for, by the beginning of their names. The longest beginning wins, see `_named_in_table`.
# In here are names that stand for one vocabulary. Aliases that move on to new generations (deepseek-chat, qwen-max,
# mistral-large-latest) and generations whose vocabulary is not at hand (llama4, qwen3.5, glm5) are estimated.
_FAMILIES = {
    "o200k_base": "gpt5 gpt5. gpt4o gpt4.1 gpt4.5 chatgpt4o gpt-oss o1 o3 o4 codex-mini",
    "cl100k_base": "gpt4 gpt3.5 gpt35 text-embedding3 text-embedding-ada002 davinci002 babbage002",
    "llama3": "llama3 llama3. meta-llama3 meta-llama3. llama-v3 llama-v3p",
    "llama2": "llama2 meta-llama2 llama-v2 tinyllama vicuna",
    "codellama": "codellama",
    "qwen3": "qwen3 qwen2.5 qwen2 qwen1.5 qwq32b",
    "deepseek_v3": "deepseek-v3 deepseek-v3. deepseek-r1 deepseek-r1:671b",
    "mistral_v1": "mistral7b open-mistral7b mistral:7b mixtral8x7b mixtral:8x7b open-mixtral8x7b",
    "mistral_v2": "mixtral8x22b mixtral:8x22b open-mixtral8x22b codestral22b codestral:22b codestral2405 "
    "mistral-large2407 mistral-large2411 pixtral-large2411",
    "mistral_v3": "mistral-nemo open-mistral-nemo pixtral12b ministral8b mistral-small3 mistral-small3. "
    "mistral-small24b mistral-small:24b mistral-small2501 mistral-small2503 mistral-small2506 "
    "devstral-small magistral-small",
    "gemma2": "gemma2",
    "gemma3": "gemma3 gemma3n",
    "gemma4": "gemma4",
    "glm4": "glm4 glm4.5",
    "kimi_k2": "kimi-k2 kimi-k2. kimi-k3",
    "phi4": "phi4",
    "olmo2": "olmo2",
    "o200k+est1-gemini": "gemini",
    "o200k+est1-claude3": "claude3 claude3. claude4 claude4.1 claude4.5 claude4.6 "
    "claude-opus4 claude-opus4.1 claude-opus4.5 claude-opus4.6 "
    "claude-sonnet4 claude-sonnet4.5 claude-sonnet4.6 claude-haiku4 claude-haiku4.5",
    "o200k+est1-claude4.7": "claude claude4-7 claude4-8 claude4-9 claude-opus4-7 claude-opus4-8 claude-opus4-9 "
    "claude-sonnet4-7 claude-sonnet4-8 claude-sonnet4-9 claude-haiku4-7 claude-haiku4-8 claude-haiku4-9",
    # Small models that carry another family's vocabulary under this family's name.
    "o200k+est1-any": "deepseek-r1: deepseek-r1-distill deepseek-r1-0528-qwen3 phi4-mini phi4-multimodal",
}
_BY_PREFIX = {prefix: counter for counter, prefixes in _FAMILIES.items() for prefix in prefixes.split()}

# What an estimate counts in the UTF-8 bytes of a text, by a byte that each such character has exactly once.
_DIGITS = b"0123456789"
_CAPITALS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ALPHABETS = bytes([*range(0xC2, 0xD4), *range(0xD6, 0xE0)])  # accented Latin, Greek, Cyrillic, Hebrew, Arabic
_SPELLED = b"\xd4\xd5\xe0\xe1"  # Armenian, Indic, Thai, Georgian, Khmer …: often spelled byte by byte
_WIDE = bytes(range(0xE2, 0xF0))  # Chinese, Japanese, Korean, symbols
_EMOJI = bytes(range(0xF0, 0xF5))

# In hundredths of a token. A row is never changed once counts have been recorded with it: a better one gets a new name.
_ESTIMATES = {  # bound, then per token, character, digit, capital, alphabets, spelled, wide, emoji
    "o200k+est1-any": (0.25, 95, 5, 56, 6, 45, 190, 30, 175),
    "o200k+est1-gemini": (0.15, 110, 3, 50, 16, 5, 20, 15, 20),
    "o200k+est1-claude3": (0.25, 100, 6, 20, 14, 25, 110, 40, 40),
    "o200k+est1-claude4.7": (0.25, 80, 19, 8, 65, 16, 105, 34, 50),
}

_DEFAULT = "o200k_base"
_UNKNOWN = "o200k+est1-any"

# A list of tokens takes ten times the memory of their text: a long text is counted in pieces. Most vocabularies
# begin a text as any other word, and end a token at these places, so the sum is the count of the whole.
_PIECE_CHARS = 1 << 20
_TOKEN_END = re.compile(r"(?<=[A-Za-z])(?= [A-Za-z])|(?<=\n)(?=[A-Za-z])")

_COUNTED_WHOLE = ("llama2", "codellama", "mistral_v1", "mistral_v2")  # they begin a text with a space of their own

_Encode = Callable[[str], list[int]]
_encoders: dict[str, _Encode] = {}
_loading = ThreadLock()


class Counter:
    """Counts tokens with a family's own vocabulary, which is loaded at the first count.

    `shortfall_bound` is the largest part of the real count that may be missing: 0.25 means that a text of
    1,000 tokens counts 750 or more. It is 0 when the count is `exact`.
    """

    __slots__ = ("_encode", "_vocabulary", "exact", "name", "shortfall_bound")

    def __init__(self, name: str, vocabulary: str, shortfall_bound: float = 0.0) -> None:
        self.name = name
        self.exact = shortfall_bound == 0
        self.shortfall_bound = shortfall_bound
        self._vocabulary = vocabulary
        self._encode: _Encode = self._load_and_encode

    def __repr__(self) -> str:
        return f"Counter({self.name!r}, shortfall_bound={self.shortfall_bound})"

    def count(self, text: str) -> int:
        """Return the number of tokens of any text; a lone surrogate counts as U+FFFD."""
        if len(text) > _PIECE_CHARS and self._vocabulary not in _COUNTED_WHOLE:
            return sum(len(self._encode(_well_formed(piece))) for piece in _pieces(text))
        try:
            return len(self._encode(text))
        except UnicodeEncodeError:
            return len(self._encode(_well_formed(text)))

    def _load_and_encode(self, text: str) -> list[int]:
        self._encode = _encoder(self._vocabulary)
        return self._encode(text)


class _Estimate(Counter):
    """Counts o200k_base tokens and adds what other vocabularies need more: never exact, rarely too low."""

    __slots__ = ("_all_weights", "_ascii_weights", "_per_char", "_per_token")

    def __init__(self, name: str, shortfall_bound: float, *weights: int) -> None:
        super().__init__(name, "o200k_base", shortfall_bound)
        self._per_token, self._per_char, *rest = weights
        kinds = (_DIGITS, _CAPITALS, _ALPHABETS, _SPELLED, _WIDE, _EMOJI)
        self._all_weights = tuple(zip(kinds, rest, strict=True))
        self._ascii_weights = self._all_weights[:2]

    def count(self, text: str) -> int:
        if len(text) > _PIECE_CHARS:
            return -(-sum(map(self._weigh, _pieces(text))) // 100)
        return -(-self._weigh(text) // 100)

    def _weigh(self, text: str) -> int:
        """Return the count in hundredths of a token."""
        try:
            data = text.encode()
        except UnicodeEncodeError:
            text = _well_formed(text)
            data = text.encode()
        size = len(data)
        hundredths = self._per_token * len(self._encode(text)) + self._per_char * len(text)
        for members, weight in self._ascii_weights if size == len(text) else self._all_weights:
            # The bytes that deleting takes away: the fastest way to count members of a set.
            hundredths += weight * (size - len(data.translate(None, members)))
        return hundredths


_COUNTERS: dict[str, Counter] = {
    name: _Estimate(name, *_ESTIMATES[name]) if name in _ESTIMATES else Counter(name, name) for name in _FAMILIES
}


def counter_for(model: str | None) -> Counter:
    """Return the counter for a model's name as providers, routers and local runners write it.

    No name means the default family, o200k_base; an unknown name means the estimate for any family.
    """
    if not model or model.isspace():
        return _COUNTERS[_DEFAULT]
    name = model.strip().lower().rpartition("/")[2]
    # A colon comes after a provider ("openai:gpt-4o", "ft:gpt-4o:acme") or before a size ("qwen3:1.7b").
    found = _named_in_table(name) or _named_in_table(name.partition(":")[2])
    return _COUNTERS[found or _UNKNOWN]


def counter_named(name: str) -> Counter:
    """Return the counter whose name was recorded with a count."""
    try:
        return _COUNTERS[name]
    except KeyError:
        raise BadConfig(
            f"no token counter has the name {name!r}",
            operation="find token counter",
            hint=f"known names: {', '.join(sorted(_COUNTERS))}",
        ) from None


def count_message(counter: Counter, message: Message, model: str | None = None) -> int:
    """Return the tokens of what a message says: its parts, its name, and the names and arguments of its tool calls.

    `model` decides what images cost; without one they cost the most. What a provider puts around messages is not in it:
    that differs by dialect and is added where one is rendered.
    """
    content = message.content
    if content.__class__ is str and not message.tool_calls and not message.name:
        return counter.count(cast(str, content))  # the common case, on the way of every append
    if isinstance(content, str):
        tokens = counter.count(content)
    else:
        shown = message.role in ("user", "tool")  # of others, dialects send only words
        tokens = sum(_count_part(counter, part, model, shown=shown) for part in content)
    if message.tool_calls:
        tokens += sum(counter.count(call.name) + counter.count(call.arguments) for call in message.tool_calls)
    if message.name:
        tokens += counter.count(message.name)
    return tokens


def _count_part(counter: Counter, part: Part, model: str | None, *, shown: bool) -> int:
    if isinstance(part, Text | Thinking):
        return counter.count(part.text)
    from daypack.text.images.formulas import rule_for  # noqa: PLC0415 — few messages have images
    from daypack.text.images.sizes import picture_in, size_in_url  # noqa: PLC0415

    rule = rule_for(model, counter.name)
    if isinstance(part, Other):
        if picture := picture_in(part.value):
            source, detail = picture
            return rule.tokens(size_in_url(source), detail) if shown else _count_mention(counter, source)
        if part.kind in _MEDIA_TYPES:
            return MEDIA_TOKENS
        return counter.count(msgspec.json.encode(part.value).decode())
    if not shown or not part.source.startswith(("data:", "https://", "http://")):
        return _count_mention(counter, part.source)
    if not isinstance(part, Image):
        return MEDIA_TOKENS
    detail = (part.meta or {}).get("detail")
    return rule.tokens(size_in_url(part.source), detail if isinstance(detail, str) else "")


def _count_mention(counter: Counter, source: str) -> int:
    """Return the tokens of `[image: plan.png]`, which stands for what is not sent; bytes are not in it."""
    return counter.count(f"[image: {source[:100] if source.startswith('data:') else source}]")


def _named_in_table(name: str) -> str | None:
    """Return the counter of the longest beginning of `name` that is in the table and ends where a word ends."""
    name = re.sub(r"^(?:[a-z-]+\.)+", "", name)  # "us.anthropic.claude-…"
    name = re.sub(r"(?<=[a-z])-(?=\d)", "", name)  # "llama-3.1" is "llama3.1"
    for end in range(len(name), 0, -1):
        if (counter := _BY_PREFIX.get(name[:end])) and _ends_word(name[end - 1], name[end : end + 1]):
            return counter
    return None


def _ends_word(last: str, following: str) -> bool:
    """A digit ends a word unless a number or version continues: gpt4 is not in gpt4o, nor qwen3 in qwen3.5."""
    if last.isdigit():
        return not following.isalnum() and following != "."
    return not (last.isalpha() and following.isalpha())


def _encoder(vocabulary: str) -> _Encode:
    with _loading, forks.postponed():
        if vocabulary not in _encoders:
            try:
                from splintr import Tokenizer  # noqa: PLC0415 - counting is the only use, and it costs 2 ms
            except ImportError as error:
                raise DaypackError(
                    "the tokenizer library cannot be loaded",
                    operation="count tokens",
                    hint="reinstall splintr-rs",
                ) from error
            _encoders[vocabulary] = Tokenizer.from_pretrained(vocabulary).encode_ordinary
        return _encoders[vocabulary]


def _pieces(text: str) -> Iterator[str]:
    """Cut a long text where a token ends; a text without such places stays whole."""
    start = 0
    while start < len(text):
        end = _TOKEN_END.search(text, start + _PIECE_CHARS)
        stop = end.start() if end else len(text)
        yield text[start:stop]
        start = stop


def _well_formed(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
