"""Forms of English words that no stemmer joins: who asks what somebody bought also means "I buy".

bring brought
go went gone
"""

from functools import cache

_FAMILIES = """
become became|begin began begun|bend bent|bite bit bitten|blow blew blown|break broke broken|bring brought
build built|burn burnt|buy bought|catch caught|choose chose chosen|come came|deal dealt|dig dug|draw drew drawn
dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought
find found|fly flew flown|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten
give gave given|go went gone|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|know knew known
lay laid|lead led|learn learnt|leave left|lend lent|lie lay lain|lose lost|make made|mean meant|meet met|pay paid
ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought|sell sold|send sent
shake shook shaken|shine shone|shoot shot|show shown|sing sang sung|sink sank sunk|sit sat|sleep slept
speak spoke spoken|spend spent|spin spun|stand stood|steal stole stolen|stick stuck|strike struck|swear swore sworn
sweep swept|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told|think thought
throw threw thrown|understand understood|wake woke woken|wear wore worn|weave wove woven|weep wept|win won
wind wound|write wrote written
child children|foot feet|knife knives|life lives|man men|mouse mice|person people|tooth teeth|wife wives|woman women"""
_ENDINGS = ("s", "es", "ing")


@cache
def _families() -> dict[str, tuple[str, ...]]:
    families: dict[str, tuple[str, ...]] = {}
    for family in _FAMILIES.replace("\n", "|").strip("|").split("|"):
        forms = tuple(family.split())
        for form in forms:
            families[form] = (*families.get(form, ()), *forms)  # "lay" is a word, and a form of another
    return families


def spell_forms(term: str) -> tuple[str, ...]:
    """Return all forms of the word that `term` is one of; only itself when a stemmer does the rest."""
    families = _families()
    found = families.get(term)
    if found is None:
        for ending in _ENDINGS:
            if term.endswith(ending):
                stem = term[: -len(ending)]
                found = families.get(stem) or (families.get(f"{stem}e") if ending == "ing" else None)
                if found:
                    break
    return tuple(dict.fromkeys((term, *found))) if found else (term,)
