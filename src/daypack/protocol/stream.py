"""A reply that comes in pieces: the text is passed on at once, the separator and what follows never."""

from codecs import getincrementaldecoder
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator

from msgspec.structs import replace

from daypack.errors import BadInput
from daypack.protocol.hybrid import Reply, insist, parse
from daypack.protocol.rules import Expected, read_stamp
from daypack.protocol.sections import SEPARATOR, unfinished_separator

_FIRST = SEPARATOR[0]


class Splitter:
    """Splits one reply while it arrives.

    From the first separator on everything waits for the end: only then it is known whether a snapshot began there or
    the text quotes the separator.
    """

    def __init__(self, *, expected: Expected = None, strict: bool = False) -> None:
        read_stamp(expected)  # what cannot be used is refused now, not at the end of the reply
        self._expected = expected
        self._strict = strict
        self._chunks: list[str | bytes] = []
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._held = ""  # a possible beginning of the separator
        self._shown = 0
        self._ended = False  # the separator came
        self.reply: Reply | None = None  # once the stream has ended

    def feed(self, chunk: str | bytes) -> str:
        """Take the next piece, characters or bytes of UTF-8; return what may be shown now."""
        if self.reply is not None:
            raise BadInput("the reply has ended", operation="feed", place="Splitter", hint="one splitter, one reply")
        if self._chunks and isinstance(chunk, str) is not isinstance(self._chunks[0], str):
            hint = "decode the bytes first"
            raise BadInput("characters and bytes in one reply", operation="feed", place="Splitter", hint=hint)
        self._chunks.append(chunk)
        if self._ended:
            return ""
        text = chunk if isinstance(chunk, str) else self._decoder.decode(chunk)
        if self._held:
            text = self._held + text
        elif _FIRST not in text:
            self._shown += len(text)
            return text
        at = text.find(SEPARATOR)
        if at >= 0:
            self._ended = True
            self._held = ""
        else:
            at = len(text) - unfinished_separator(text)
            self._held = text[at:]
        self._shown += at
        return text[:at]

    def close(self) -> Reply:
        """End the reply and take it apart; its `unsent` is what may be shown now."""
        if self.reply is None:
            made = parse(_join(self._chunks), expected=self._expected)
            self.reply = replace(made, unsent=made.text[self._shown :])
            self._chunks.clear()
        if self._strict:
            insist(self.reply)
        return self.reply

    def read(self, chunks: Iterable[str | bytes]) -> Iterator[str]:
        """Yield the text of a stream, what was held back last; the reply is in `reply` afterwards."""
        for chunk in chunks:
            if text := self.feed(chunk):
                yield text
        if rest := self.close().unsent:
            yield rest

    async def aread(self, chunks: AsyncIterable[str | bytes]) -> AsyncIterator[str]:
        """Do what `read` does, for a stream that is awaited."""
        async for chunk in chunks:
            if text := self.feed(chunk):
                yield text
        if rest := self.close().unsent:
            yield rest


def _join(chunks: list[str | bytes]) -> str | bytes:
    texts = [chunk for chunk in chunks if isinstance(chunk, str)]
    return "".join(texts) if texts else b"".join(chunk for chunk in chunks if isinstance(chunk, bytes))
