"""Standing rules in German, French, Spanish, Chinese and Japanese: what directs and lasts, and what excludes it.

A sentence in lower case is a rule if a pattern of its language matches and no exclusion does. Spaced languages mark
imperatives by the first word; the others by their endings.
"""

import re
from typing import NamedTuple

from daypack.text.english import FUNCTION_WORDS
from daypack.text.language import language_of


class Language(NamedTuple):
    """The patterns of one language."""

    rule: re.Pattern[str]
    excluded: re.Pattern[str]


_GERMAN_VERBS = (
    r"(?:antworte|schreib(?:e|t|en sie)?|verwende(?:n sie)?|benutze?|nutze|nimm|nenn(?:e)?|sprich|sag(?:e)?|"
    r"halte?|fass(?:e)?|gib|zeig(?:e)?|"
    r"mach(?:e)?|lass(?:e)?|führ(?:e)?|lauf|prüf(?:e)?|teste?|frag(?:e)?|erklär(?:e)?|formuliere?|formatiere?|"
    r"runde|zitiere?|begründe|"
    r"beginn(?:e)?|beende|bleib(?:e)?|sei|vermeide?|lösch(?:e)?|änder(?:e|t)?|füge?|setz(?:e)?|leg(?:e)?|"
    r"speicher(?:e)?|committe?|pushe?|"
    r"duze?|sieze|sprech(?:e|en)|übersetze?|berücksichtige|beachte|achte|geh(?:e)?|denk(?:e)?|stell(?:e)?|warte|"
    r"informier(?:e)?|"
    r"bestätige|rechne|spare?|kürze|verzichte|unterlass(?:e)?|ignoriere|behandle|betrachte|rufe?|ruf|starte|"
    r"installiere?|merge|nummeriere)"
)
_GERMAN = Language(
    re.compile(
        # a scope with an instruction
        rf"\b(?:ab (?:jetzt|sofort|heute|nun)|von (?:jetzt|nun) an|künftig|in zukunft|zukünftig|fortan|"
        rf"für den rest|grundsätzlich|generell|"
        rf"standardmäßig|bis auf weiteres|jedes mal,? wenn|immer wenn|in (?:allen|jeder|jedem|sämtlichen)|"
        rf"bei (?:allen|jeder|jedem)|"
        rf"(?:vor|nach) (?:jedem|jeder)|ausnahmslos|durchgehend|während (?:dieses|"
        rf"des ganzen))\b(?!.*\b(?:gibt es|wurde|war)\b)"
        rf"(?=.*(?:\b{_GERMAN_VERBS}\b|\bbitte\b|\bsoll(?:st|en|t)?\b|\bmuss(?:t)?\b|\bdarf(?:st)?\b|"
        rf"\bwill ich\b|\bmöchte ich\b|\bkeine?n?\b|\bnur\b))"
        # universals and prohibitions in an instruction
        rf"|\A(?:und |also |ach ja,? |bitte |außerdem,? |übrigens,? )*(?:{_GERMAN_VERBS}\b.*\b(?:immer|"
        rf"nie(?:mals)?|stets|jede[nrms]?|alle[ns]?|nur|keine?n?|"
        rf"ohne|statt|anstatt|anstelle|nicht)\b|(?:immer|nie(?:mals)?|stets|nie wieder|niemals)\b)"
        r"|\bdu (?:sollst|musst|darfst|sollest) (?:\w+ ){0,4}?(?:immer|nie(?:mals)?|stets|nicht|keine?n?|nur|"
        r"jede[nrms]?)\b"
        r"|\b(?:musst|sollst|darfst) du (?:\w+ ){0,4}?(?:immer|nie(?:mals)?|stets|nicht|keine?n?|nur|erst|die|alle)\b"
        rf"|\A(?:bitte )?{_GERMAN_VERBS}\b.*\b(?:deine[nr]? (?:antwort|erklärung|text|code)\w*|antworten|"
        rf"mich (?:mit|als)|in ganzen sätzen|stichpunkte|"
        r"auf (?:deutsch|englisch|französisch|spanisch)|kurz|knapp|sachlich|förmlich|locker|ehrlich|kein blatt|"
        r"metrisch|emojis?|fachbegriffe)\b"
        # conditions, names, memory, preferences
        rf"|\b(?:wenn|sobald|falls|sooft) (?:ich|du|dir|etwas|ein[es]?|"
        rf"jemand)\b.*[,:] ?(?:dann )?(?:bitte )?(?:{_GERMAN_VERBS}|meine ich|heißt das|will ich|sollst du|nicht)\b"
        r"|\b(?:merk(?:e)? dir|denk(?:e)? (?:immer )?daran|behalte? im (?:kopf|hinterkopf)|vergiss (?:nie|"
        r"nicht),? dass|beachte,? dass|nicht vergessen:)"
        r"|\bnenn(?:e)? mich\b|\bsprich mich\b|\bduze mich\b|\bsieze mich\b|\bmit [\"„»'].{1,40}[\"“«'] meine ich\b"
        r"|\b(?:ich|wir) (?:bevorzuge|mag lieber|ziehe|hätte gern(?:e)? (?:immer|alle)|will keine|möchte keine|"
        r"möchte,? dass du|will,? dass du)\w*\b"
        r"|\A(?:und |bitte |aber )*(?:keine?n?|kein) (?!problem|ahnung|sorge|angst|zeit|idee|fehler|wunder|lust|"
        r"thema|stress|ding|grund)\w+"
        r"|\bhör(?:e)? (?:bitte )?auf,? \w+|\b(?:ist|sind) tabu\b|\bfinger weg\b|\b(?:nichts|nie|"
        r"niemals) .*\bohne (?:meine|rückfrage|mich|zu fragen|freigabe)"
        r"|\balle \w+ (?:müssen|sollen|bitte|werden|kommen|in|auf)\b|\bwir (?:verwenden|benutzen|nutzen|"
        r"schreiben|nennen|sagen|halten|committen|testen) (?:\w+ ){0,3}?(?:hier|immer|nur|keine?n?|nie|"
        r"ausschließlich|grundsätzlich)\b"
        # a sentence without a subject that begins with its verb
        r"|\A(?:und |bitte |also |außerdem,? )*(?!(?:ich|du|er|sie|es|wir|ihr|man|das|der|die|den|dem|ein\w*|"
        r"mein\w*|unser\w*|noch|fast|so|auch|hier|da|dort|leider|warum)\b)[a-zäöüß]+(?:e|en sie)? "
        r"(?:\w+ ){0,4}?(?:nie|niemals|immer|stets|jedes mal)\b"
    ),
    re.compile(
        r"\?|\b(?:stürzt|passiert|funktioniert|schlägt|tritt|hängt|kommt immer|läuft immer|geht immer|ich habe|"
        r"ich hatte|hat immer|war immer|vorerst|"
        r"diesmal|heute noch|erstmal|noch nicht|im moment|macht nichts|keine sorge|kein problem)\b|\A(?:das|der|"
        r"die|es|er|sie|ich|man|mein\w*|unser\w*) (?:\w+ ){0,3}(?:immer|nie)\b"
        r"|\bdiese[nrms]? (?!gespräch|projekt|chat|unterhaltung|repo)\w+|\bdies\b"
    ),
)
_FRENCH_VERBS = (
    r"(?:réponds?|répondez|écris|écrivez|utilise[rz]?|emploie|employez|garde[rz]?|donne[rz]?|montre[rz]?|fais|"
    r"faites|mets|mettez|parle[rz]?|appelle[rz]?|"
    r"tutoie|vouvoie|évite[rz]?|cite[rz]?|demande[rz]?|vérifie[rz]?|lance[rz]?|exécute[rz]?|commence[rz]?|"
    r"termine[rz]?|finis|reste[rz]?|sois|soyez|"
    r"explique[rz]?|résume[rz]?|traduis|traduisez|arrondis|nomme[rz]?|ajoute[rz]?|indique[rz]?|précise[rz]?|"
    r"limite[rz]?|préfère[rz]?|respecte[rz]?|"
    r"laisse[rz]?|arrête[rz]?|cesse[rz]?|pense[rz]?|suis|suivez|prends|prenez|propose[rz]?|signe[rz]?|"
    r"formate[rz]?|présente[rz]?|attends|attendez|dis|dites)"
)
_FRENCH = Language(
    re.compile(
        r"\b(?:désormais|dorénavant|à partir de (?:maintenant|là|ce point)|à l'avenir|à chaque fois que|"
        r"chaque fois que|pour la suite|"
        r"pour le reste de|par défaut|jusqu'à nouvel ordre|dans (?:toutes|tous|chaque|chacune)|"
        r"en toutes circonstances|en règle générale|sauf si je|pour chaque|à chaque)\b"
        rf"(?=.*(?:\b{_FRENCH_VERBS}\b|-moi\b|\btu (?:dois|devras|ne)\b|\bvous (?:devez|ne)\b|\bil faut\b|"
        rf"\bje (?:veux|voudrais|souhaite)\b|\bpas de\b|\bjamais\b|\btoujours\b|, \w+))"
        rf"|\A(?:et |aussi,? |s'il te plaît,? |stp,? |merci de |au fait,? |sinon,? )*(?:(?:ne|"
        rf"n')\s?(?:me |m'|le |la |les )?\w+ (?:jamais|pas|plus|aucun\w*|rien)\b"
        rf"|{_FRENCH_VERBS}\b.*\b(?:toujours|jamais|chaque|tou(?:te)?s les|systématiquement|uniquement|seulement|"
        rf"au lieu d|plutôt que|sans)\b|(?:jamais|toujours) )"
        rf"|\A(?:s'il te plaît,? )?{_FRENCH_VERBS}\b.*\b(?:(?:tes|vos|les) (?:réponses|explications)|"
        rf"en (?:français|anglais|allemand|espagnol)|jargon|concis\w*|bref|"
        r"brièvement|phrases|emojis?|ton (?:formel|neutre)|simplement)\b"
        r"|\bquand (?:je|tu|on)\b.*[,»\"] ?(?:\w+[- ])*\w+|\bsi (?:je|tu n'es pas|tu as un doute|"
        r"tu ne sais)\b.*, ?(?:ne |n')?"
        rf"{_FRENCH_VERBS}"
        r"|\b(?:retiens|souviens-toi|rappelle-toi|n'oublie(?:z)? (?:pas|jamais)|garde en tête|"
        r"note) (?:bien )?(?:que|qu')"
        r"|\bappelle-moi\b|\btutoie-moi\b|\bvouvoie-moi\b|\b(?:je préfère|je ne veux (?:pas|plus)|"
        r"je veux (?:que tu|toutes|tous|toujours)|j'aimerais que tu)\b"
        r"|\A(?:pas d[e'])\s?\w+|\bplus (?:jamais )?d[e']\s?\w+|\b(?:avant|après) (?:chaque|de (?:commiter|"
        r"committer|pousser|modifier|supprimer))\b.*,"
        r"|\btu (?:dois|devrais|ne dois|ne devrais) (?:toujours|jamais|pas|systématiquement)\b|\barrête de \w+|"
        r"\b(?:toutes|tous) (?:tes|les|vos) \w+ (?:doivent|en)\b"
    ),
    re.compile(
        r"\?|\b(?:ce|cet|cette|ces) (?!projet|conversation|session|chat)\w+|\b(?:ça (?:marche|plante|ne marche)|"
        r"il (?:plante|y a)|j'ai (?:toujours|jamais)|je n'ai jamais|"
        r"plante toujours|pour l'instant|cette fois|pas grave|"
        r"pas de (?:problème|souci|quoi|chance))\b"
    ),
)
_SPANISH_VERBS = (
    r"(?:responde|contesta|escribe|usa|utiliza|emplea|mantén|da|dame|muestra|haz|pon|habla|llama|evita|cita|"
    r"pregunta|comprueba|verifica|revisa|ejecuta|"
    r"corre|empieza|comienza|termina|acaba|sé|explica|resume|traduce|redondea|nombra|añade|agrega|indica|limita|"
    r"prefiere|respeta|deja|piensa|sigue|toma|"
    r"propón|firma|formatea|presenta|espera|di|avísame|tutéame|trátame|incluye|guarda|ten|consulta|confirma)"
)
_SPANISH = Language(
    re.compile(
        r"\b(?:a partir de (?:ahora|hoy|aquí)|de ahora en adelante|de aquí en adelante|en (?:el futuro|adelante|"
        r"lo sucesivo)|cada vez que|siempre que|"
        r"por defecto|hasta nuevo aviso|durante el resto|por regla general|como norma|en (?:todas|todos|cada)|"
        r"salvo que yo|a menos que yo)\b"
        rf"(?=.*(?:\b{_SPANISH_VERBS}\b|\bdebes\b|\btienes que\b|\bquiero\b|\bno \w+es\b|\bno \w+as\b|\bnunca\b|"
        rf"\bsiempre\b|\bsin\b|, \w+))"
        r"|\A(?:y |además,? |por favor,? |por cierto,? |también )*(?:nunca|jamás|siempre) \w+(?:es|as|a|e)\b"
        rf"|\A(?:y |además,? |por favor,? |por cierto,? )*{_SPANISH_VERBS}\b.*\b(?:siempre|nunca|cada|"
        rf"tod[oa]s (?:las|los|tus)|solo|sólo|únicamente|en lugar de|en vez de|sin|antes de)\b"
        rf"|\A(?:por favor,? )?{_SPANISH_VERBS}\b.*\b(?:tus (?:respuestas|explicaciones)|en (?:español|inglés|"
        rf"francés|alemán)|jerga|concis\w+|breve\w*|frases|emojis?|formal|tono)\b"
        r"|\A(?:y |por favor,? |pero )*no (?:vuelvas a|me|te|uses|utilices|hagas|borres|toques|añadas|agregues|"
        r"escribas|pongas|cambies|modifiques|incluyas|digas|"
        r"inventes|hables|mandes|envíes|instales|des|olvides que|(?!puedes|tienes|sabes|eres|quieres|debes|estas|"
        r"necesitas|entiendes|crees|vas|has|haces)\w+(?:es|as))\b"
        r"|\bcuando (?:yo )?(?:diga|escriba|mande|envíe|pida|pregunte|mencione|pegue|use)\b.*,|"
        r"\bsi (?:yo )?(?:digo|escribo|no estás segur\w|no sabes|tienes dudas)\b.*,"
        r"|\b(?:recuerda|acuérdate de|ten en cuenta|ten presente|no olvides|memoriza) (?:siempre )?que\b|"
        r"\bllámame\b|\btrátame\b|\btutéame\b"
        r"|\b(?:prefiero (?:que|\w+ .*(?:a|antes que|en lugar))|quiero que (?:siempre|nunca|todas|todos|me)|"
        r"no quiero (?:ver|que|ningún|más))\b|\bdeja de \w+(?:ar|er|ir)\b"
        r"|\bantes de (?:cada|hacer|subir|confirmar|borrar|instalar)\b.*,|\bdespués de cada\b|\b(?:nada de|"
        r"ni un solo|sin) \w+(?:, por favor)?[.!]?\Z"
        r"|\bdebes? (?:siempre|nunca)\b|\b(?:siempre|nunca) debes\b|\btod[oa]s (?:las|los|tus) \w+ (?:deben|en|van)\b"
    ),
    re.compile(
        r"\?|\b(?:siempre me (?:da|sale|pasa)|nunca me|falla siempre|siempre falla|siempre he|nunca he|por ahora|"
        r"esta vez|de momento|no pasa nada|est[eao]s? (?!proyecto|conversación|chat|sesión)\w+|"
        r"no te preocupes|no me (?:funciona|sale|da|gusta|acuerdo)|no sé)\b"
    ),
)
_CHINESE = Language(
    re.compile(
        r"(?:从现在(?:起|开始)|今后|以后|从今以后|往后|接下来的(?:对话|所有)|每次|每当|一律|默认|始终|永远|所有(?:回答|回复|代码|提交)|任何时候|在(?:本|这个)项目(?:中|里)|"
        r"當我|从此)"
        r".*(?:请|請|要|用|不|别|必须|回答|回复|写|使用|先|再|都|应|只)"
        r"|(?:请|請)(?:总是|始终|永远|一直|务必|一律|只|不要|别|勿|记住|保持|用(?:中文|英文|英语|简体|繁体))|(?:不要|别|禁止|切勿|绝不|不准|不许)(?:再|使用|用|在|修改|"
        r"删除|添加|加|写|给|提|擅自|直接|随便|说|叫|动|碰)"
        r"|当我(?:说|写|发|问|提)|如果我(?:说|写|发|问)|记住|请记得|牢记|叫我|称呼我|必须(?:先|用|在|使用|包含)|而不是|回答(?:要|应|请)|我(?:更喜欢|偏好|希望你(?:总|"
        r"始终|每次|不要))"
    ),
    re.compile(
        r"[吗嗎呢]？?\Z|？|总是(?:失败|报错|出错|崩|不|很|会)|为什么|怎么|暂时|这次|先不要|不要紧|别担心|没关系|每次.*(?:失败|报错|都会|崩溃|出错)"
    ),
)
_JAPANESE = Language(
    re.compile(
        r"(?:今後|これから|これ以降|以後|毎回|常に|必ず|いつも|絶対に|原則(?:として)?|デフォルトで|この(?:会話|プロジェクト)では|すべての(?:回答|コード|返信)|全ての)"
        r".*(?:ください|下さい|お願い|ように|こと|しないで|使って|で答え|禁止|して)"
        r"|(?:しないで|使わないで|入れないで|変えないで|消さないで|触らないで|書かないで|言わないで|つけないで|省略しないで|勝手に\S+ないで)(?:ください|下さい|ね|よ|。|\Z)"
        r"|ではなく.*(?:使って|書いて|にして|ください)|(?:と言ったら|と書いたら|と聞いたら|する(?:前|たび)に(?:は)?|したら必ず|場合は).*(?:ください|下さい|して|こと)|"
        r"覚えておいて|忘れないで|"
        r"と呼んで|(?:敬語|丁寧語|タメ口|日本語|英語|箇条書き|簡潔)(?:で|に|を).*(?:ください|下さい|お願い|答えて|話して|書いて|使って)|(?:の方が|ほうが)好み|禁止(?:です|。|\Z)"
    ),
    re.compile(r"か[。？?]?\Z|？|いつも(?:失敗|エラー|落ち)|今回は|とりあえず|失敗します|エラーが"),
)
_BY_LANGUAGE = {"de": _GERMAN, "fr": _FRENCH, "es": _SPANISH}
_KANA = re.compile(r"[\u3040-\u30ff]")
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff]")


def speaks_rule(sentence: str, words: list[str]) -> bool | None:
    """Return True if a sentence in one of these languages is a rule; None if it is English."""
    text = sentence.lower().replace("’", "'").strip(" *_\t")
    if not text.isascii():
        if _KANA.search(text):
            return _is_rule(text, _JAPANESE)
        if _IDEOGRAPH.search(text):
            return _is_rule(text, _CHINESE)
    language = language_of(words)
    if language in _BY_LANGUAGE:
        return _is_rule(text, _BY_LANGUAGE[language])
    if FUNCTION_WORDS.isdisjoint(words):  # too short to tell
        return any(_is_rule(text, patterns) for patterns in _BY_LANGUAGE.values()) or None
    return None


def _is_rule(text: str, patterns: Language) -> bool:
    return patterns.rule.search(text) is not None and patterns.excluded.search(text) is None
