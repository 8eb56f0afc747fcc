"""English words by what they do in a sentence: enough to retell short ones, no grammar."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PAST = _words(
    """
    was were had did said went made got took came saw knew gave found told became left felt kept began brought bought
    built chose caught drank drove ate fell flew forgot grew heard held lost paid met ran wrote sent sold slept spoke
    spent stood taught thought won wore woke understood led sang swam rode drew broke hid threw shook stole swore rose
    froze fed fought sought stuck struck swept shot sat dealt meant hung lent bent bound dug
    wasn't weren't hadn't didn't
    """
)
# What ends like a past form and is none.
NOT_PAST = _words("need feed heed bleed breed seed weed speed proceed exceed succeed embed shed wed bed red indeed")
MODALS = _words(
    "can could will would should must might may shall cannot can't couldn't won't wouldn't shouldn't mustn't"
)
# Present forms behind "I" and "you", and what they are behind a name.
AGREED = {
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
# Present forms that take an "s" behind a name; none that is also a past form (put, read, set, cut).
PRESENT = _words(
    """
    live work like love want need prefer think know use own play hate enjoy feel believe hope plan see run speak drive
    eat drink expect require support maintain remember understand agree disagree suggest recommend propose belong mean
    get make take keep start stop come give find look help learn write call manage lead build design develop sell rent
    travel volunteer collect paint sing dance cook bake swim ride train suffer avoid appreciate consider doubt suspect
    guess assume wonder wait care miss depend sleep wake walk grow
    """
)
ADVERBS = _words(
    """
    also just really recently already never always finally still only usually often probably actually definitely
    currently now then once again mostly generally sometimes rarely certainly clearly simply even both truly
    """
) | {"no longer"}
# Words before a "you" that does something.
SUBJECT_AFTER = _words(
    """
    and but that if when because so as while what how where why who which think know hope sure since after before until
    once though although unless then or yes no
    """
)
# Words before an "I" or "we" whose verb stands before it.
INVERTS = _words("am are do did does have had has should can could will would may might was were nor neither")
# What is somebody's own, so that "our" says whose.
KIN = _words(
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
# Words that have a capital letter only where they begin a sentence.
PLAIN_FIRST = _words(
    """
    the a an this that these those it there he she they we you our my your his her its their all some most each every no
    none if when as in on at for from after before since because by with to last next today yesterday tomorrow everyone
    everybody someone nobody nothing both one two three during until while although though about over under not
    currently recently here
    """
)
# Words that tell English from its neighbours, and some of those that tell the neighbours.
ENGLISH = _words(
    """
    the of and to is that for it with this you we i not be are my at have from or as can do if should was our your
    please what when how has will would hi hello thanks yes no on by moved he she they his her their had did been there
    in a an but so about up out just me all let don't use us were
    """
)
FOREIGN = _words(
    """
    der die das und ist nicht wir ich ein eine mit auf dem zu sich auch von le la les des et est une nous je pas pour
    dans il sur du au ce el los y para por del las que se con het een van niet
    """
)
