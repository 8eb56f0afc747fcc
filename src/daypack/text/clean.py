"""Model output without what is not output: thinking, chat markers, code fences, talk about itself, refusals.

    <think>The user wants …</think>```markdown   ->   # Context
    # Context                                         …
    …

Each thing that had words in it is a loss with a reason. A tag or a phrase that a fact quotes (in backticks or quotation
marks, in the middle of a sentence) stays.
"""

import re

from daypack.text.sentences import sentences
from daypack.types.compaction import Loss, LossReason

_MAX_LOSSES = 60
_MAX_LOSS_CHARS = 160
_MAX_ROUNDS = 4  # what is taken out of a tag may leave a tag: <thi<think></think>nk>

_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}+[A-Za-z]")
_INVISIBLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\ufff9-\ufffd"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_THOUGHTS = r"think|thinking|thought|thoughts|reasoning|reason|reflection|scratchpad|analysis|monologue|inner_monologue"
_TAG = re.compile(
    rf"(?<![`\"'“])(?:<\s{{0,3}}(?P<close>/?)\s{{0,3}}(?:{_THOUGHTS})(?:\s[^<>\n]{{0,80}})?\s{{0,3}}/?>"
    r"|◁(?P<kimi>/?)think▷|\[(?P<square>/?)(?:THINK|THINKING|REASONING)\]"
    r"|<\|(?P<turn>begin|end)_of_(?:thought|thinking)\|>"
    r"|<\|channel\|>(?P<channel>analysis|commentary|final)<\|message\|>)",
    re.IGNORECASE,
)
_TURN_END = re.compile(
    r"(?<![`\"'“])(?:<\|(?:im_end|eot_id|end|end_of_text|endoftext|return|eom_id|end▁of▁sentence)\|>"
    r"|</s>|<end_of_turn>|<eos>)"
)
_MARKER = re.compile(
    r"(?<![`\"'“])(?:<\|(?:im_start|start_header_id|start)\|>\s{0,2}(?:assistant|system|user|model)?"
    r"(?:<\|end_header_id\|>)?"
    r"|<\|[A-Za-z_▁ ]{2,30}\|>|<start_of_turn>(?:model|user)?|</?s>|<bos>|\[/?INST\]|<</?SYS>>)[ \t]*\n?"
)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[ \t]*[A-Za-z]{0,12}[ \t]*$\n?", re.MULTILINE)
_HEADING = re.compile(r"^\s{0,3}#{1,4}\s*\w|^\s*\{", re.MULTILINE)
_BULLET = re.compile(r"\s*(?:[-*+•>]\s+|\d{1,2}[.)]\s+)*(?:\[[ xX]?\]\s+)?(?:\*\*|__|\*|_)?[\"'“(]?")

# One pattern a line, each at the beginning of a sentence. An apostrophe stands for both kinds of it.
_REFUSAL = r"""
I(?:'m| am) (?:really |very |so )?sorry|sorry[,.]|I apologi[sz]e|my apologies
I (?:cannot|can't|can not|could not|couldn't)\b|I(?:'m| am) (?:unable|not able|not allowed)
I (?:won't|will not) (?:be able|help|do|provide)|unfortunately,? I\b|I must decline
as an? (?:AI|(?:large )?language model)\b[^.\n]{0,60}\b(?:cannot|can't|unable|not able)
抱歉|对不起|很抱歉|我无法|我不能
"""
_ECHO = r"""
extract facts from (?:this|the) conversation|rules:|copy technical terms|one sentence per bullet|skip anything you
leave out everything you|no meta-?commentary|no thinking tags|only output the filled|output only the filled
a message starts with its number|the conversation is material|the newest messages define|end every bullet with
write every bullet as|use no pronouns|</?conversation>|fill in the template|\[\d+ (?:user|assistant|tool|system)\]
"""
_SELF = r"""
I (?:should|need|must|will|would|have to|want|think|believe|guess|see|notice|understand|am going|hope|know)\b
I have (?:now |also )?(?:summari|extract|fill|complet|creat|provid|includ|identif|organi)
I can (?:see|help|summari|fill|provide|start|extract)|I was (?:asked|told)\b|I do(?:n't| not) (?:have|know|see)\b
I'(?:ll|d|m|ve)\b|let me\b|let's (?!Encrypt)|hmm\b|wait,|now,? (?:I|let)\b
(?:okay|ok|alright|sure|certainly|of course|great|absolutely)(?:[,!.:]|\s+(?:so|here|let|I)\b)
here(?:'s| is| are) (?:the|a|an|my|your|what|some)\b|here (?:it|they|you) (?:is|are|go)\b
below (?:is|are)\b|the following (?:is|are)\b
the user (?:wants|asked|is asking|would like|needs|expects) me\b
as an? (?:AI|(?:large )?language model|assistant)\b|(?:please )?(?:feel free|let me know|do not hesitate)
please (?:note|provide|let)\b|hope (?:this|that) helps|is there anything|if you (?:have any|need|want|would like)\b
based on (?:the|this|our) (?:conversation|transcript|chat|messages|provided|given)|in (?:this|the) conversation,
this (?:summary|template|response|output) |(?:my|the) (?:response|answer|output|summary) (?:is|should|will)
end of (?:template|summary|context)|(?:first|next|then|so|finally),? (?:I|let me|let's)\b
好的[,，。!！]|以下是|我应该|我需要|让我|作为(?:一个)?(?:AI|人工智能)|希望这
"""


def _any_of(patterns: str) -> str:
    return "|".join(patterns.strip().split("\n")).replace("'", "['’]")


_START = r"(?:\A|(?<=[.!?。！？]\s)|(?<=[。！？]))\s{0,3}"
_SAID = re.compile(
    rf"{_START}(?:(?P<refused>{_any_of(_REFUSAL)})|(?P<placeholder>{_any_of(_ECHO)})"
    rf"|(?P<meta>{_any_of(_SELF)}))"
    r"|(?P<aside>[,;] (?:so|and|but|then|therefore|now) (?:I (?:should|need to|must|will)|I['’]ll|let me)\b)",
    re.IGNORECASE,
)
_DETAILS: dict[LossReason, str] = {"refused": "the model declined", "placeholder": "echoes the prompt"}


def clean(text: str) -> tuple[str, tuple[Loss, ...]]:
    """Return model output without thinking, talk and wrappers, and the removed texts as losses."""
    losses: list[Loss] = []
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    text = _INVISIBLE.sub("", _COLOUR.sub("", text))
    for _ in range(_MAX_ROUNDS):
        text = _own_turn(_without_thinking(text, losses), losses)
        if not _TAG.search(text):
            break
    text = _FENCE.sub("", _TAG.sub("", text))
    lines = [_without_talk(line, losses) for line in text.split("\n")]
    text = "\n".join(line for line in lines if line is not None).strip("\n")
    if len(losses) > _MAX_LOSSES:
        more = Loss(f"{len(losses) - _MAX_LOSSES} more", "meta", "not listed")
        losses = [*losses[:_MAX_LOSSES], more]
    return text.strip(), tuple(losses)


def find_talk(sentence: str) -> Loss | None:
    """Return the loss a sentence is, when the model talks about itself in it, declines, or repeats its prompt."""
    said = _SAID.search(sentence)
    if not said:
        return None
    for reason, detail in _DETAILS.items():
        if said.lastgroup == reason:
            return _loss(sentence, reason, detail)
    return _loss(sentence, "meta", "talks about itself")


def _loss(what: str, reason: LossReason, detail: str) -> Loss:
    return Loss(" ".join(what[: 4 * _MAX_LOSS_CHARS].split())[:_MAX_LOSS_CHARS], reason, detail)


def _without_thinking(text: str, losses: list[Loss]) -> str:
    """Drop everything between thinking tags, nested or mixed; after an unclosed tag all of the rest."""
    tags = [(match.start(), match.end(), _opens(match)) for match in _TAG.finditer(text)]
    if not tags:
        return text
    kept: list[str] = []
    depth, at, opened = 0, 0, 0
    heading = max((match.start() for match in _HEADING.finditer(text)), default=-1)
    for start, stop, opens in tags:
        if depth == 0 and opens:
            kept.append(text[at:start])
            opened = stop
        elif depth == 0:
            # The prompt itself may have opened the tag: then all before it was thought, if anything comes after.
            if heading >= stop - 1:
                losses.append(_loss("".join(kept) + text[at:start], "meta", "thinking"))
                kept.clear()
            else:
                kept.append(text[at:start])
        elif not opens and depth == 1:
            losses.append(_loss(text[opened:start], "meta", "thinking"))
        depth = depth + 1 if opens else max(depth - 1, 0)
        at = stop
    if depth == 0:
        return "".join([*kept, text[at:]])
    last = tags[-1]
    if not last[2] and heading >= last[1] - 1:  # more was opened than closed, and then the answer came
        losses.append(_loss(text[opened : last[0]], "meta", "thinking"))
        return "".join([*kept, text[last[1] :]])
    losses.append(_loss(text[opened:], "meta", "thinking that was not closed"))
    return "".join(kept)


def _opens(match: re.Match[str]) -> bool:
    channel = match["channel"]
    if channel:
        return channel.casefold() != "final"
    if match["turn"]:
        return match["turn"].casefold() == "begin"
    return not (match["close"] or match["kimi"] or match["square"])


def _own_turn(text: str, losses: list[Loss]) -> str:
    """Return the model's own turn without chat markers; a turn it made up after it is dropped."""
    at = 0
    for match in _TURN_END.finditer(text):
        own = _MARKER.sub("", text[at : match.start()])
        if not own.strip():
            at = match.end()
            continue
        rest = _MARKER.sub("", _TURN_END.sub("", text[match.end() :]))
        if rest.strip():
            losses.append(_loss(rest, "meta", "another turn"))
        return own
    return _MARKER.sub("", text[at:])


def _without_talk(line: str, losses: list[Loss]) -> str | None:
    """Return a line without the sentences in which the model talks about itself; None when nothing is left."""
    mark = _BULLET.match(line)
    begin = mark.end() if mark else 0
    body = line[begin:]
    if not _SAID.search(body):
        return line
    kept: list[str] = []
    for sentence in sentences(body):
        if loss := find_talk(sentence.text):
            losses.append(loss)
        else:
            kept.append(sentence.text)
    return line[:begin] + " ".join(kept) if kept else None
