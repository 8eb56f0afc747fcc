"""Patterns that classify a single sentence: dates, decisions, tasks, personal facts, introductions."""

import re

from daypack.text.english import CHANGE_VERBS, DONE_VERBS
from daypack.text.filler import NAME


def _any_of(phrases: str, *, whole: bool = True) -> str:
    """Return one pattern for phrases separated by lines or commas; an apostrophe matches both kinds of it."""
    listed = [phrase.strip() for line in phrases.strip().split("\n") for phrase in line.split(" , ")]
    joined = "|".join(listed).replace("'", "['’]")
    return rf"\b(?:{joined})\b" if whole else f"(?:{joined})"


_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_DAY_NUMBER = r"\d{1,2}(?:st|nd|rd|th)?"
DATE = re.compile(
    rf"\b(?:\d{{4}}-\d\d-\d\d|{_DAY_NUMBER}(?: of)? {_MONTH}(?:,? \d{{4}})?"
    rf"|{_MONTH} {_DAY_NUMBER}(?:,? \d{{4}})?\b(?!:)|{_MONTH} \d{{4}}|\d{{1,2}}/\d{{1,2}}/\d{{2,4}}"
    r"|\d{1,2}\.\d{1,2}\.(?:19|20)\d\d|(?<=\bin )(?:19|20)\d\d|(?<=\bsince )(?:19|20)\d\d)\b"
    r"|\d{4}年\d{1,2}月(?:\d{1,2}日)?|\d{1,2}月\d{1,2}日"
)
# A day that is relative to the day of the message.
RELATIVE_DAY = re.compile(
    _any_of(
        r"""
        yesterday , today , tonight , tomorrow , this (?:week|month|weekend|morning)
        (?:last|next) (?:week|month|year|night|weekend|summer|winter|spring|autumn|fall|[a-z]+day)
        (?:\d+|an?|two|three|four|five|six|a few) (?:days?|weeks?|months?|years?) ago
        """
    )
    + "|昨天|今天|明天|上周|下周",
    re.IGNORECASE,
)
# A reference that cannot be resolved without the sentences before it.
DANGLING = re.compile(
    r"(?:it|its|this|that|these|those|they|them|their|he|him|his|she|her|there|here|which|who|then|one|same)\b"
    r"|(?:since|because|when|while|although|though|unless|if|so that)\b(?!.*,)"
    r"|[^.]*\b(?:use|used|chose|picked|do|did|keep|made|painted|got) (?:it|them|this|that|those)\b(?! [a-z]+)",
    re.IGNORECASE,
)
DANGLING_NOT_ENGLISH = re.compile(
    r"(?:er|sie|es|das|dies|diese[rs]?|dann|dort|il|elle|cela|ça|ella|eso|esto)\b|[它他她这那]", re.IGNORECASE
)
# Not stated as true.
HYPOTHETICAL = re.compile(
    r"\b(?:in (?:the|my|this|a) (?:story|novel|book|game|play|scene|film|movie|dream)|as a [a-z]+, i want"
    r"|imagine|pretend|suppose|hypothetically|let['’]s say|role ?play|(?:if|wish|as though) i"
    r"|write (?:me )?an? (?:poem|song|story|letter|speech))\b",
    re.IGNORECASE,
)
# The speaker asks to remember it.
REMEMBER = re.compile(r"(?:please )?(?:remember|keep in mind|note|don['’]t forget|bear in mind)\b", re.IGNORECASE)
# … and what: "Remember that the key is under the mat", "FYI, the lift is reserved for deliveries".
REMEMBERED = re.compile(
    r"(?:please )?(?:remember|keep in mind|bear in mind|note|don['’]t forget)(?: that|[,:]) *(?P<claim>\S.+)",
    re.IGNORECASE,
)
INTRODUCED = re.compile(
    r"(?:fyi|for your information|for the record|for context|heads[- ]up|update)[,:]? +(?P<claim>\S.+)", re.IGNORECASE
)
# A value that was known before has changed.
UPDATE = re.compile(
    _any_of(
        " , ".join(CHANGE_VERBS)
        + """
        no longer , not any ?more , anymore , instead of , from now on , as of , now , correction
        verschoben , geändert , jetzt , nicht mehr , déplacé , changé , maintenant , cambiado , ahora , ya no
        """
    )
    + "|改为|改到|改成|不再|现在|更新为|変更|今は",
    re.IGNORECASE,
)
TENTATIVE = re.compile(r"\b(?:tentative|tentatively|provisional|proposed|planned|unconfirmed|tbc)\b", re.IGNORECASE)
DECIDED = re.compile(
    _any_of(
        r"""
        (?:we|they|the team|everyone)(?: have| has|'ve)?(?: all)? (?:decided|agreed|chose|chosen|settled|picked|opted)
        i(?: have|'ve)? (?:decided|opted|settled)
        let's (?:go with|use|stick|stay with|keep using|not|switch|move to|pick|choose|settle on)
        (?:we|i)(?:'ll| will) (?:go with|use|stick|keep using|switch) , (?:we|i)(?:'re| are|'m| am) going with
        we (?:switched|moved|migrated) to , (?:the|our|final) decision (?:is|was)
        it (?:was|is|has been) (?:decided|agreed) , decided (?:to|on|against)
        (?:will not|won't|(?:are|is) not going to|(?:are|is)n't going to) [^.;?]{2,60} (?:any ?more|any longer)
        """
    ),
    re.IGNORECASE,
)
# "The board approved the budget": a decision if the subject has a name.
DECISION_VERBS = frozenset(
    ["decided", "agreed", "chose", "chosen", "voted", "approved", "rejected", "opted", "settled"]
)
# The object of a decision that cannot be resolved: "We chose it."
DANGLING_OBJECT = re.compile(r"\W*(?:it|them|this|that|those)\b(?! [a-z]+)", re.IGNORECASE)
DECISION_LABEL = re.compile(r"(?:decisions?|decided|agreed|resolution)\s*(?::|[-–—]\s)\s*(?P<text>\S.+)", re.IGNORECASE)
TASK_LABEL = re.compile(
    r"(?:todos?|to-dos?|to do|action items?|open tasks?)\s*(?::|[-–—]\s)\s*(?P<text>\S.+)", re.IGNORECASE
)
UNDECIDED = re.compile(
    r"(?:\b(?:not|never|nothing|nobody|no one|yet to|if|unless|before|until|once|when|whether|almost)\b|n['’]t\b)"
    r"[^.;]{0,40}\b(?:decided?|agreed?|settled?|chosen?|chose|picked?|opted)\b",
    re.IGNORECASE,
)
LETS = re.compile(r"let['’]?s\b|let us\b", re.IGNORECASE)
AGREED = re.compile(r"\b(?:decided|agreed|settled)\b", re.IGNORECASE)
# A temporary activity: no longer true tomorrow.
TEMPORARY = re.compile(
    _any_of(
        """
        trying to , working on , having trouble , struggling , not sure , wondering , looking (?:for|at|into|to)
        having (?:an? )?(?:issue|problem)s? , getting (?:an? )?error , stuck , (?:i'm|i am) using
        wants? to , needs? help , curious
        """
    ),
    re.IGNORECASE,
)
ADVICE = re.compile(
    r"\A(?:also|then|just) |\b(?:and|to) (?:suggest|provide|give|tell|explain|let me know|show|help|see|recommend)\b",
    re.IGNORECASE,
)
RULE = re.compile(
    r"(?:please )?(?:always|never|from now on|don['’]t ever|do not ever|make sure (?:to )?(?:always|never))\b",
    re.IGNORECASE,
)
FROM_NOW_ON = re.compile(r"(?:from now on|going forward|starting (?:now|today)|as of (?:now|today))\b", re.IGNORECASE)
# A lasting personal fact.
PERSONAL = re.compile(
    _any_of(
        r"""
        my (?:full |first |last |nick)?name(?:'s| is) , i(?:'m| am) called , i grew up , i was born
        i (?:live|work|study|studied|graduated|teach|volunteer|own|manage|lead|speak) (?!it|this|that)
        i (?:prefer|hate|dislike) (?!it|this|that)
        i (?:can't|don't|do not|cannot) (?:eat|drink) , i no longer (?:live|work|study|own|eat|drink|like)
        i(?: have|'ve)?(?: just| recently)? moved to (?=(?-i:[A-Z]))
        i(?:'m| am) (?:allergic|vegan|vegetarian|from|originally from|married|engaged|single|divorced|retired|pregnant)
        i(?:'m| am) an? (?!bit|little|lot|huge|big|fan|few|sucker)[a-z]+
        i(?:'ve| have) (?:two|three|four) [a-z]+ , i(?:'ve| have) been (?:working (?:at|as|for)|living in|married)
        i(?:'ve| have) an? (?:new )?(?:dog|cat|son|daughter|brother|sister|wife|husband|twin|kid|allergy|degree|pet)
        """,
        whole=False,
    )
    + r"\b|\Amy (?:wife|husband|partner|son|daughter|kids?|children|mom|mum|mother|dad|father|brother|sister|boss|dog"
    r"|cat|manager|birthday|favou?rite(?: [a-z]+){1,2}|job|company|team|email|phone(?: number)?|address|budget|goal"
    r"|deadline|doctor|landlord)(?:,? [A-Z][a-z]+,?)?(?:['’]s| is| are| was| lives?| works?| turned| has) ",
    re.IGNORECASE,
)
PERSONAL_NOT_ENGLISH = re.compile(
    r"我(?:叫|住|对.{1,12}过敏|(?:从)?不(?:吃|喝|喜欢)|讨厌|最?喜欢)"
    r"|\bich (?:heiße|wohne|arbeite|mag|lebe|esse|trinke|bin (?:allergisch|verheiratet|vegan|vegetarier))\b"
    r"|\bje (?:m['’]appelle|vis|habite|travaille|préfère|suis (?:allergique|marié))"
    r"|\b(?:me llamo|vivo en|trabajo en|prefiero|soy (?:alérgic|veg))",
    re.IGNORECASE,
)
STATE = re.compile(
    _any_of(
        """
        is , are , was , were , has , have , runs? , uses? , lives? , listens , costs? , expires? , needs? , requires?
        starts? , ends? , lies , equals , points? , owns? , supports? , defaults? , ist , sind , liegt , est , sont , es
        """
    )
    + "|是|在|有|です",
    re.IGNORECASE,
)
REQUESTED = re.compile(
    r"(?:please |pls |kindly |can you |could you |would you |will you |i need you to |i['’]d like you to |"
    r"remind me to |todo:? |to-do:? |action item:? |don['’]t forget to |remember to )+(?P<deed>[a-z].+)",
    re.IGNORECASE | re.DOTALL,
)
OWN_TASK = re.compile(
    r"(?:i|we)(?:(?P<still> still)| also| really)? (?:need to|have to|must)"
    r" (?P<deed>(?!be\b|say\b|admit\b|know\b|think\b|get going\b|go\b|run\b|ask\b|see\b|have\b|do\b)[a-z].+)",
    re.IGNORECASE | re.DOTALL,
)
# A request that says itself that it is still to be done.
REMINDED = re.compile(r"(?:please )?(?:don['’]t forget to|do not forget to|remember to|remind me to)\b", re.IGNORECASE)
# Requests that the next reply answers: they leave no open task.
ANSWERED_AT_ONCE = re.compile(
    _any_of(
        """
        explain , tell , show , give , list , summari[sz]e , translate , recommend , suggest , compare , describe
        answer , read , look , help , say , provide , analy[sz]e , search , find , generate , write , draft , rewrite
        convert , note , see , try , let , elaborate , clarify , continue , repeat , imagine , assume , consider , think
        ask , confirm , calculate , compute , solve , guess , return , output , respond , reply , keep , use , stop
        ignore , remember , wait , format , be , do , check out , take a look , share , have , walk , make sure , act
        pretend , forget
        """
    ),
    re.IGNORECASE,
)
DONE = re.compile(
    _any_of(
        " , ".join(DONE_VERBS)
        + """
        called , scheduled , wrote , cancell?ed , paid , reviewed , signed , submitted , uploaded , migrated
        picked up , took care of , taken care of , erledigt , fertig , terminé , hecho , listo
        """
    )
    + "|完成|搞定|已",
    re.IGNORECASE,
)
BARE_DONE = re.compile(
    r"\W*(?:all |it['’]s |that['’]s |is )?(?:done|finished|completed|完成了?|erledigt|fertig|terminé|hecho)[\s.!✅]*",
    re.IGNORECASE,
)
ONLY_PARTLY = re.compile(r"\b(?:except|but|not|only|partly|apart|besides|almost|still)\b|n['’]t\b", re.IGNORECASE)
NOT_DONE = re.compile(
    _any_of(
        """
        not , never , yet , will , going to , should , need , must , have to , todo , once , when , if , until , please
        """
    )
    + r"|n['’]t\b",
    re.IGNORECASE,
)
OWN_NAME = re.compile(rf"\b(?:[Mm]y name(?:['’]s| is)|I(?:['’]m| am) called) (?P<name>{NAME}(?: {NAME})?)")
SELF_INTRODUCTION = re.compile(
    rf"(?:I(?:['’]m| am)|[Tt]his is) (?P<name>{NAME})(?:[.,!]|\Z| (?:from|and I|speaking)\b)"
)
_KIN = (
    "wife|husband|partner|boss|manager|colleague|coworker|friend|sister|brother|son|daughter|mother|father|mom|mum|dad|"
    "girlfriend|boyfriend|assistant|mentor|teacher|doctor|neighbou?r|cousin|uncle|aunt|designer|lawyer|landlord"
)
RELATION = re.compile(
    rf"\b[Mm]y (?P<what>{_KIN}),? (?P<name>{NAME})\b(?!['’]s\b)|\b(?P<name2>{NAME}) is my (?P<what2>{_KIN})\b"
)
NOT_A_NAME = frozenset(
    ["I", "The", "An", "Yes", "No", "Not", "Just", "So", "And", "But", "Sorry", "Happy", "Glad", "Sure", "Ok", "Back"]
)
