"""The language of a text, recognised by its function words."""

import re

from daypack.text.english import FUNCTION_WORDS

# Words that several of these languages share are not listed.
_FUNCTION_WORDS = {
    "en": "the of and to is that for it with this you we i not be are my at have from or as can do if should",
    "de": "der das und ist nicht wir ich ein eine mit für auf dem zu sich auch von wird noch bitte kein keine sind "
    "haben wie aber nach mein unser muss einen uns werden",
    "fr": "le les des et est une nous je pas pour dans il sur du au ce cette avec mais sont c'est ne qui mon votre "
    "notre vous j'ai j'habite à",
    "es": "el los y una para por del las está pero su nos como más hay esta tiene puedes este que",
}
_KNOWN = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
_ENOUGH_WORDS = 2
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_READ_CHARS = 400


def language_of(words: list[str]) -> str:
    """Return "en", "de", "fr" or "es" for words in lower case; "en" in doubt."""
    best, most = "en", 0
    for language, known in _KNOWN.items():
        hits = sum([word in known for word in words])
        if hits > most:
            best, most = language, hits
        if language == "en" and hits >= _ENOUGH_WORDS and hits * 5 >= len(words):
            break  # plainly English: the others need not be tried
    return best


def is_english(text: str) -> bool:
    """Return True if a text is plainly English: one word in six is an English function word, and few are foreign."""
    if not text.isascii() and sum(map(str.isascii, text)) < 0.9 * len(text):
        return False
    words = _WORD.findall(text[:_READ_CHARS].lower().replace("’", "'"))
    known = sum([word in FUNCTION_WORDS for word in words])
    return known * 6 >= len(words) > 0 and language_of(words) == "en"
