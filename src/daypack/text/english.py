"""English words by what they do in a sentence: the one place for stop words, stems, irregular forms and verb lists.

Tables only, no grammar. Whatever needs a list of English words takes it from here; where two callers need different
lists, the difference is named here.
"""

from functools import cache, lru_cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words without a meaning of their own. Negations are not among them: "not" makes a different statement.
STOP_WORDS = _words(
    """
    a about above after again all also am an and any are as at be because been before being below between both but by
    can could did do does doing down during each few for from further had has have having he her here hers him his how
    i if in into is it its itself just me more most my of off on once only or other our ours out over own same she
    should so some such than that the their theirs them then there these they this those through to too under until up
    us very was we were what when where which while who whom why will with would you your yours s t d ll m re ve
    """
)
# Search leaves out negations and the first halves of "don't" as well. `bench/retrieval` is measured with this list.
SEARCH_STOP_WORDS = (STOP_WORDS - _words("above below itself us")) | _words(
    "no nor not now might please whose aren couldn didn doesn don isn wasn wouldn"
)
# Words that ask, or refer to the conversation itself, rather than naming the subject of a question.
ASKING_WORDS = _words(
    """
    ask asked asking answer question questions tell told say said says saying mention mentioned mentioning mentions
    describe described describing explain explained give given list name named order sequence summary summarize
    summarise brought bring bringing discuss discussed discussing talk talked talking conversation conversations chat
    chats session sessions message messages item items different aspect aspects including include various specific
    particular kind kinds type types sort way ways thing things something anything many much long often total exactly
    according know knew known remember recall remind walk show provide throughout across along yes likely consider
    considered time times want wanted one two three four five six seven eight nine ten
    """
)
# In files that instruct an agent, "off" and "under" say something; abbreviations and modal verbs do not.
INSTRUCTION_STOP_WORDS = (STOP_WORDS - _words("down few further off under")) | _words(
    "e eg else etc g ie let may might per please shall thing via vs whether whose yes yourself"
)

# How strong a rule is: obligation, permission, frequency, negation. Two rules with other force words share a subject.
FORCE_WORDS = _words(
    """
    always every must ensure sure need needs required require requires allowed allow permitted mandatory never no not
    none nothing without cannot nobody neither nor forbidden forbid prohibited prohibit banned ban avoid instead rather
    """
)

# Opposites: "kept shut" is "not opened". The first word of a group stands for all of it, and `|` begins its opposites.
_OPPOSITES = """
on enable activate | off disable disabled deactivate
open | close shut
start begin | stop end
increase raise | decrease reduce
include | exclude omit
accept | reject refuse decline
show | hide
add | remove
early | late
first | last final
high | low
long | short
large big | small
fast quick | slow
inside internal | outside external
public | private
push | pull
same | different
true | false
succeed pass | fail
new | old
buy | sell
"""
NEGATING_PREFIXES = ("un", "dis", "de", "in", "im", "non")


@cache
def opposites() -> dict[str, tuple[str, bool]]:
    """Return each word that has an opposite with the word it is compared by, and True if it denies that word."""
    found: dict[str, tuple[str, bool]] = {}
    for group in _OPPOSITES.strip().splitlines():
        words, denied = (half.split() for half in group.split(" | "))
        found |= {word: (words[0], word in denied) for word in (*words, *denied)}
    return found


# A value that was known before is different now; as parts of a regular expression.
CHANGE_VERBS = (
    "moved", "changed", "switched", "rescheduled", "postponed", "renamed", "updated", "delayed", "extended",
    "confirmed", "finali[sz]ed", "cancell?ed", "increased", "decreased", "raised", "lowered", "replaced", "upgraded",
    "downgraded",
)  # fmt: skip
# Work is complete.
DONE_VERBS = (
    "done", "finished", "completed", "fixed", "implemented", "added", "removed", "closed", "merged", "resolved",
    "updated", "deployed", "shipped", "sent", "booked", "bought", "renamed", "moved", "installed", "released",
    "published", "created", "written", "cleaned", "replaced",
)  # fmt: skip

_IRREGULAR_VERBS = """
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
wind wound|write wrote written"""
_IRREGULAR_NOUNS = """
child children|foot feet|knife knives|life lives|man men|mouse mice|person people|tooth teeth|wife wives|woman women"""


def _families(table: str) -> list[list[str]]:
    return [family.split() for family in table.strip().replace("\n", "|").split("|")]


# Past forms that are neither a present form ("lay") nor a participle alone ("shown").
PAST = frozenset(family[1] for family in _families(_IRREGULAR_VERBS)) - {"lay", "shown"} | _words(
    "was were had did bound wasn't weren't hadn't didn't"
)


@cache
def _irregular_forms() -> dict[str, tuple[str, ...]]:
    forms: dict[str, tuple[str, ...]] = {}
    for family in _families(_IRREGULAR_VERBS) + _families(_IRREGULAR_NOUNS):
        for word in family:
            forms[word] = (*forms.get(word, ()), *family)  # "lay" is a verb, and the past of another
    return forms


def irregular_forms(word: str) -> tuple[str, ...]:
    """Return a word and the forms of it that no stemmer joins: buy, bought. Only the word itself if it is regular."""
    known = _irregular_forms()
    forms = known.get(word)
    if forms is None:
        for ending in ("s", "es", "ing"):
            if word.endswith(ending):
                root = word[: -len(ending)]
                forms = known.get(root) or (known.get(f"{root}e") if ending == "ing" else None)
                if forms:
                    break
    return tuple(dict.fromkeys((word, *forms))) if forms else (word,)


_INFLECTIONS = (("ing", ""), ("ed", ""))
_DERIVATIONS = (
    ("ification", "ify"), ("umption", "um"), ("ription", "rib"), ("ission", "it"), ("nsion", "nd"), ("ision", "id"),
    ("lication", "l"), ("lish", "l"), ("ation", "at"), ("ative", "at"), ("ature", ""), ("ible", ""), ("able", ""),
    ("ing", ""), ("ion", ""), ("ed", ""), ("ment", ""), ("ance", ""), ("erence", "er"), ("val", "v"), ("sal", "s"),
    ("ly", ""), ("er", ""),
)  # fmt: skip


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """Return an English word without its inflection: fails, failed and failing have the same stem."""
    return _strip(word, _INFLECTIONS)


@lru_cache(maxsize=1 << 15)
def root(word: str) -> str:
    """Return an English word without inflection and derivation: narrates and narration have the same root."""
    return _strip(word, _DERIVATIONS)


def _strip(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    if not word.isascii() or not word.isalpha() or len(word) < 4:
        return word
    if word.endswith(("ies", "ied")) and len(word) > 4:
        word = f"{word[:-3]}y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, replacement in endings:
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2 and any(letter in "aeiouy" for letter in rest):
            word = rest + replacement
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]  # running -> run
    return word[:-1] if len(word) > 4 and word[-1] in "ey" else word


# Words that end like a past form and are none.
_NOT_PAST = _words(
    "need feed heed bleed breed seed weed speed proceed exceed succeed embed shed wed bed red indeed relent"
)
MODALS = _words(
    "can could will would should must might may shall cannot can't couldn't won't wouldn't shouldn't mustn't"
)
# Verb forms that follow "I" and "you", and the form that follows a name.
SINGULAR = {
    "am": "is",
    "are": "is",
    "were": "was",
    "have": "has",
    "do": "does",
    "weren't": "wasn't",
    "aren't": "isn't",
    "don't": "doesn't",
    "haven't": "hasn't",
    "go": "goes",
    "study": "studies",
    "try": "tries",
    "teach": "teaches",
    "watch": "watches",
    "carry": "carries",
    "wish": "wishes",
    "worry": "worries",
    "fix": "fixes",
}
# Verbs that take an "s" after a name; none whose past form is the same (put, read, set, cut).
PRESENT = _words(
    """
    live work like love want need prefer think know use own play hate enjoy feel believe hope plan see run speak drive
    eat drink expect require support maintain remember understand agree disagree suggest recommend propose belong mean
    get make take keep start stop come give find look help learn write call manage lead build design develop sell rent
    travel volunteer collect paint sing dance cook bake swim ride train suffer avoid appreciate consider doubt suspect
    guess assume wonder wait care miss depend sleep wake walk grow meet seem end open close say listen
    return contain expire default point equal pay show lie
    """
)
ADVERBS = _words(
    """
    also just really recently already never always finally still only usually often probably actually definitely
    currently now then once again mostly generally sometimes rarely certainly clearly simply even both truly
    """
) | {"no longer"}
_FINITE = (
    (MODALS | PAST | SINGULAR.keys() | frozenset(SINGULAR.values()))
    | {f"{verb}s" for verb in PRESENT}
    | _words("i we you they costs")
)


def is_past(verb: str) -> bool:
    """Return True for a past form in lower case."""
    irregular = verb in PAST or verb.removeprefix("re") in PAST  # rewrote
    return verb not in _NOT_PAST and (irregular or (len(verb) > 3 and verb.endswith("ed")))


def is_finite(word: str) -> bool:
    """Return True for a word that makes a sentence of a phrase: a finite verb, a contraction of one, or "they"."""
    word = word.lower().replace("’", "'")
    return "'" in word or word in _FINITE or is_past(word)


# Nouns for what a family has, so that "our" means the speaker's own.
FAMILY = _words(
    """
    mum mom mother dad father parents son sons daughter daughters kids kid children child baby brother sister family
    wife husband partner dog dogs cat cats puppy house home flat wedding anniversary honeymoon marriage friend friends
    grandma grandpa grandmother grandfather aunt uncle cousin neighbour neighbours neighbor neighbors
    """
)
IMPERATIVES = _words(
    """
    add analyse analyze answer apply ask assign attach avoid book build buy call cancel change check clean close
    commit compare configure confirm convert copy create debug delete deploy design document download draft drop edit
    email enable ensure explain export extract fetch file find finish fix follow forward generate get give help
    implement import improve include increase inform install integrate investigate invite join keep launch list look
    mail make merge migrate move note notify open optimise optimize order organise organize paint paste pay plan post
    prepare print provide publish push put read recommend redo refactor reject release remember remind remove rename
    reorder repeat replace reply report rerun reschedule reset restart restore return revert review rewrite roll run
    save schedule search select send set share show sign simplify skip solve sort split start stop submit suggest
    summarise summarize switch take tell test translate treat try turn undo update upgrade upload use validate verify
    wait watch write be do let leave trust prefer address format respect speak respond treat charge lock log forget
    ignore imagine pretend act
    """
)
# Words that have a capital letter only at the beginning of a sentence.
LOWER_CASE = _words(
    """
    the a an this that these those it there he she they we you our my your his her its their all some most each every no
    none if when as in on at for from after before since because by with to last next today yesterday tomorrow everyone
    everybody someone nobody nothing both one two three during until while although though about over under not
    currently recently here
    """
)
# Words that make up much of any English text.
FUNCTION_WORDS = _words(
    """
    the of and to is that for it with this you we i not be are my at have from or as can do if should was our your
    please what when how has will would hi hello thanks yes no on by moved he she they his her their had did been there
    in a an but so about up out just me all let don't use us were
    """
)


# The parts of a plain statement: "The boat of Ada is blue". `memory/document/plain_statements.py` has its grammar.
DEFINITE = _words("the my our every each all both no most")
DETERMINERS = DEFINITE | _words("a an his her its their your this that these those some any another many several few")
PREPOSITIONS = _words(
    """
    of in on at for from to with by about into onto over under between near behind beside after before during since
    until without within across through per via against among around above below outside inside upon than as
    """
)
NUMBERS = _words(
    """
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million dozen half twice once
    first second third
    """
)
# Nouns that stand for a clause or for the conversation itself: "The point is …", "Your answer was …".
SHELL_NOUNS = _words(
    """
    answer answers question questions message messages conversation discussion chat reply response explanation summary
    example examples point problem problems issue issues error errors idea thing things way reason fact truth rest goal
    trick catch result results output outcome task following part news case difference feeling change changes code
    approach solution fix bug function test tests request step steps moment situation look view
    """
)
# What a speaker thinks or feels about something, and what holds for the moment only.
OPINIONS = _words(
    """
    good great nice bad awful terrible horrible wonderful amazing awesome beautiful lovely cool fun funny cute perfect
    excellent fantastic incredible impressive interesting exciting boring annoying important crucial essential vital
    special precious valuable priceless key hard easy tough difficult tricky challenging fine okay ok better best worse
    worst wrong crazy insane weird strange sad happy glad proud excited thrilled nervous scared worried tired busy
    ready sure obvious possible impossible likely unlikely helpful useful useless necessary inspiring motivating
    relaxing calming soothing peaceful magical surreal powerful meaningful rewarding worth worthwhile huge massive
    delicious tasty yummy gorgeous stunning breathtaking brilliant smart clever stupid silly ridiculous hilarious lucky
    grateful thankful sweet adorable favorite favourite blast joy reminder comforting refreshing therapeutic invaluable
    everything nothing something enough broken missing slow unbelievable memorable unforgettable correct clear wild
    """
)
# A sentence with one of these is told with feeling, or of the moment.
EMOTIVE = _words("so such super really too pretty quite totally absolutely truly definitely honestly literally very")
MOMENTARY = _words(
    "today tonight tomorrow yesterday again yet soon lately anymore recently here there currently finally"
)
# After "is": true for hours, not for months.
TRANSIENT = _words(
    "asleep awake down up out away back gone late early hungry thirsty sick ill wet hot cold open on off over done"
)
# What somebody thinks or says is not yet so, and what something seems to be is not what it is.
SUPPOSING = _words(
    """
    think thinks believe believes feel feels guess guesses hope hopes say says seem seems look looks sound sounds
    suppose supposes appear appears wonder wonders doubt doubts expect expects assume assumes suggest suggests
    """
)
# Verbs that say little without their object, and that many others can replace.
LIGHT_VERBS = PRESENT | _words("be do go have leave let put set stay switch turn")
# Something is from then on what it was not before.
BECOMING = _words(
    """
    became joined moved retired graduated married hired promoted appointed acquired founded renamed switched replaced
    merged relocated inherited adopted enrolled
    """
)
