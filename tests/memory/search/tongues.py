"""Generated entries and questions in many languages: long and short, with summaries, authors, sessions and times."""

import random

from memory.search.feeds import entry

from daypack.types.memory import Entry

_SPACED = {
    "en": "paint painted painting painter river meeting invoice running hopped relation national garden the of we café",
    "de": "Straße Gemälde malen gemalt Rechnung Fluss Überblick Größe der die wir Besprechung Gärten München zurück",
    "fr": "peinture peint rivière facture réunion élève déjà où garçon naïve la le nous été jardins œuvre",
    "ru": "картина река счёт встреча рисовать мы быстро ёлка",
    "ko": "그림을 그렸다 강에서 회의는 송장을 우리는 정원이 서울에서",
    "ar": "لوحة نهر فاتورة اجتماع نحن حديقة",
    "code": "src/main.py x_1 foo-bar 3.14 v2.0 2026-11-18 a@b.example don't 0xFF aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
}
_UNSPACED = {
    "zh": "我们昨天在东京吃了拉面会议发票河流花园画画的人很多今天天气好",
    "ja": "私たちは昨日東京でラーメンを食べた会議の請求書は川の庭園で描く",
    "th": "เราวาดภาพที่แม่น้ำเมื่อวานนี้ใบแจ้งหนี้การประชุมสวน",
}
AUTHORS = (None, None, "Ana López", "Bo", "李雷", "ana maria", "Zoë O'Neil")


def _words(rng: random.Random, count: int, tongue: str) -> str:
    if tongue in _UNSPACED:
        letters = _UNSPACED[tongue]
        starts = [int(len(letters) * rng.random() ** 2) for _ in range(count)]
        return "，".join(letters[start : start + rng.randint(1, 9)] for start in starts)
    words = _SPACED[tongue].split()
    return " ".join(
        words[int(len(words) * rng.random() ** 2)] + rng.choice(("", "", "", ".", "s")) for _ in range(count)
    )


def _text(rng: random.Random, count: int) -> str:
    tongues = [*_SPACED, *_UNSPACED]
    mixed = rng.random() < 0.2
    parts = [_words(rng, max(1, count // 3), rng.choice(tongues)) for _ in range(3)] if mixed else []
    return " ".join(parts) or _words(rng, count, rng.choice(tongues))


def make_entries(count: int, rng: random.Random) -> list[Entry]:
    """Return entries with gaps between their numbers."""
    made: list[Entry] = []
    seq = 0
    for number in range(count):
        seq += rng.choice((1, 1, 1, 2, 40))
        size = rng.choices((4, 15, 400, 3_000), (40, 50, 6, 0.4))[0]
        text = _text(rng, size) if rng.random() > 0.01 else rng.choice(("", " ", "!!!", "\0", "\0paint\0"))
        about = {
            "session": rng.choice((None, f"s{number // 25}", "long")),
            "role": rng.choice((None, "user", "assistant", "person")),
            "author": rng.choice(AUTHORS),
            "at": f"2026-{1 + number % 12:02}-{1 + number % 28:02}T10:00:00Z" if rng.random() < 0.5 else None,
        }
        made.append(entry(seq, text, _text(rng, 8) if rng.random() < 0.3 else "", **about))
    return made


def make_question(rng: random.Random) -> str:
    """Return a question of one word or many, which may name an author."""
    asked = _text(rng, rng.choice((1, 2, 5, 12, 90)))
    return f"{rng.choice(AUTHORS)} {asked}" if rng.random() < 0.2 else asked
