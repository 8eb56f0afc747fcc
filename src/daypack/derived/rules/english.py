r"""English patterns of standing rules: what directs an agent, what lasts, and what holds only once.

A sentence is in lower case; patterns without `\b` at their start are matched where a clause begins.
"""

import re


def any_of(listed: str) -> str:
    """Return the alternatives of a pattern from words between spaces; `_` is a space within one."""
    return "(?:" + "|".join(listed.split()).replace("_", " ") + ")"


# Greetings and links before the first word that counts: "ok, and by the way, please always …".
OPENERS = re.compile(
    r"(?:(?:and|also|but|so|ok(?:ay)?|oh|ah|hey|hi|hello|well|then|now|please|pls|kindly|just|again|plus|thanks|"
    r"thank you|"
    r"great|good|nice|cool|perfect|right|yes|yep|yeah|no(?=[,.!])|sure|actually|anyway|besides|additionally|"
    r"furthermore|"
    r"moreover|lastly|finally|first(?:ly)?(?=,)|second(?:ly)?(?=,)|third(?:ly)?(?=,)|important(?:ly)?|note(?=:)|"
    r"nb|reminder|"
    r"rules?(?=:)|tip|p\.?s\.?|fyi|btw|by the way|(?:one|two|a few) (?:more|other|last|final)? ?(?:things?|"
    r"rules?|points?|"
    r"notes?|requests?)|another (?:thing|rule|point)|side note|quick (?:note|rule|reminder)|general (?:note|rule)|"
    r"as (?:a reminder|i said|i mentioned)|as a (?:general )?rule|in general|generally|that said|guys|team|"
    r"before (?:we|i) (?:start|begin|continue|go on|forget)|while (?:we're at it|i think of it|i remember)|"
    r"the point is|"
    r"to be clear|for the record|more generally|i repeat|once more|(?:just )?so you know|if possible|"
    r"if you (?:can|could)|rule (?:number )?\w+(?=:)|oh and|last(?:ly)? but not least|most important(?:ly)?|going by|"
    r"very important|it's simple|new rule|house rule|seriously|honestly|for real|(?:thing|request) for the future)"
    r"\b[\s,:;.!–—-]*)+"
)
# An opener that sets what follows apart from the task around it.
ASIDE = re.compile(
    r"\b(?:by the way|btw|(?:one|two|a few) (?:more|other|last|final)? ?(?:things?|rules?|points?|notes?|"
    r"requests?)\b|side note|"
    r"general(?:ly)?\b|in general|for the record|another (?:thing|rule)|p\.?s\b|rule\b|(?:quick )?(?:"
    r"note\b(?! (?:down|where|which|what|who|whose|how|when|why|it|them)\b)|reminder\b)|"  # "note where" is a task
    r"while (?:we're at it|i think of it|i remember)|before i forget)"
)
# A question in form, an instruction in fact.
POLITE = re.compile(
    r"(?:can|could|would|will) you (?:please |kindly |maybe |perhaps |just |all |also )*(?=\w)|(?:would|do) you mind "
    r"|(?:can|could|may|might) i ask you (?:to|not to) |(?:can|could) we (?:please )?(?=always|never|agree|stop|"
    r"stick|keep)"
    r"|i(?:'d| would) (?:really )?(?:appreciate|love|be (?:glad|grateful|happy)) (?:it )?if (?:you )?(?:would |"
    r"could |can )*"
    r"|(?:it )?would (?:help|be (?:great|good|nice|better|helpful)) if (?:you )?(?:would |could |can )*"
    r"|i(?:'d| would) like to ask you (?:to|not to) |(?:i(?:'m| am) asking you|you're asked|i want you|"
    r"i need you) to "
)

# How long an instruction lasts.
SCOPE_ADVERB = re.compile(
    r"(?:from (?:now|here|this (?:point|moment|message|day)|today) (?:on(?:wards?)?|forward|forth|out)|from today|"
    r"as (?:of|from) (?:now|today)|starting (?:now|today|from now|from today)|(?:going|moving) forwards?|"
    r"in (?:the )?future|"
    r"henceforth|hereafter|by default|per default|at all times|under (?:no|any) circumstances?|"
    r"as a (?:general )?rule|"
    r"for the (?:rest|remainder|duration) of (?:this|the|our) \w+|for (?:all|any|every) (?:future|further|"
    r"subsequent) \w+|"
    r"in general|no matter what|whatever happens|everywhere|until further notice|for ever|forever|"
    r"(?:in|for|on|throughout|during|across) (?:this|our|the|my) (?:whole |entire )?(?:project|repo(?:sitory)?|"
    r"codebase|"
    r"chat|conversation|session|thread|collaboration|team))\b[\s,:]*"
)
SCOPE = re.compile(
    rf"\b{SCOPE_ADVERB.pattern}|\b(?:all|any|your|every) future\b|\bfuture \w+s\b"
    r"|\b(?:until|till|unless|except when|except if) (?:i|we|further notice|told|instructed|asked|explicitly|"
    r"otherwise|"
    r"specifically|stated|you(?:'re| are) (?:told|asked))\b|\bdefault to\b"
    r"|\bat any (?:time|point)\b|\bany ?time\b|\b(?:every|each) (?:single )?time\b|\bwhenever\b|\bwherever\b"
    r"|\bpermanently\b|\bfor good\b|\bno matter (?:what|how|which|who)\b|\bwithout exceptions?\b|\bno exceptions?\b"
    r"|\bin (?:everything|anything|whatever|all that) (?:you|we)\b|\bas long as (?:we|you|i)\b|\ball the time\b"
    r"|\bacross the board\b|\bstanding (?:order|rule|instruction|request)\b|\bonly ever\b"
    r"|\b(?:the|our|my|house|ground|team|project) (?:rule|convention|policy|house style)s? (?:is|are|here|for)\b"
    r"|\b(?:in|at the (?:end|top|start|beginning|bottom) of|to) your (?:answers|replies|responses|messages|code|"
    r"commits)\b"
    r"|\b(?:after|before|with|in|for|to|at the (?:end|top|start|beginning|bottom) of|above|below|on) (?:every|"
    r"each|any|all of your|"
    r"all your) (?:single )?(?:\w+ )?(?:answer|repl|response|message|e?mail|file|commit|summar|report|recipe|"
    r"example|text|document|code|"
    r"function|test|script|plan|step|change|task|deploy|release|session|push|pull|merge|edit|feature|claim|trip|"
    r"meal|week|"
    r"day|month|chapter|section|slide|paragraph|query|quer|migration|review|suggestion|recommendation|figure|"
    r"number|price|"
    r"decision|chart|plot|table|module|class|method|endpoint|new|draft|post|article|purchase|meeting)\w*"
    r"|\bonce (?:a|per|every) \w+\b|\bevery (?:day|morning|evening|week|monday|friday|few)\b|\bnext time\b"
)
# In a prohibition also these.
SCOPE_OF_PROHIBITION = re.compile(
    r"\bever\b|\bagain\b|\bany ?more\b|\bany longer\b|\bwithout (?:asking|check|confirm|my|me\b|prior|first|"
    r"explicit|permission|"
    r"approval|telling|running|tests?\b|sources?|reading|consult|a (?:test|source|reason|review))\w*|\bunless\b"
    r"|\buntil (?:i|we)\b|\bat all\b|\bto anyone\b|\bunder any\b"
)
# Something at hand: an instruction about it ends with it.
ONE_OFF = re.compile(
    r"\b(?:for now|right now|at the moment|for the moment|for the time being|yet|this time|just this once|just once|"
    r"today(?! on)|tonight|tomorrow|this (?:morning|week|afternoon|evening)|meanwhile|in the meantime|"
    r"for this (?:one|run|file|task|time|case|pr|commit|test|function|question|step|change|fix|part|page|email|trip)|"
    r"in this (?:file|function|case|line|pr|commit|test|class|method|paragraph|step|change|email|answer)|"
    r"(?:as|the ones?|like) (?:above|below)|line \d+|these two|both of|(?:lines?|steps?|points?|options?|items?|"
    r"questions?|"
    r"parts?|tasks?) (?:#|no\. ?)?\d+|the (?:second|first|third|next|last|previous|other|above|following|latest|"
    r"current|"
    r"remaining|failing|broken|attached) (?!words?\b|lines?\b|sentences?\b|thing\b|person\b|names?\b|order\b|"
    r"format\b|language\b|paragraph\b)\w+)\b"
)

# Reported words, suppositions, stories and kind words are no instructions.
REPORTED = re.compile(
    r"\b(?:says|saying|told (?:me|us|him|her|them)|tells (?:me|us)|claims that|claimed|states|wrote|writes|"
    r"recommends|recommended|"
    r"suggests|according to|as they say|heard that|advises?|advised|(?<!i )(?<!i've )(?<!as )said|readme|"
    r"style guide says|linter)\b"
)
STORY = re.compile(
    r"\b(?<!sure )(?<!that )(?:i(?:'ll| will|'d|'ve| have| had| used to| was)?|we(?:'ve|'d| had| have)|he|she|"
    r"they|you|it|this|that|"
    r"(?:the|my|his|her|your|its|our) [\w-]+(?: [\w-]+)?) (?:just |still |have |had |has |almost )?"
    r"(?:always|never|often|usually|used to)\b(?! (?:want|wants) (?:you|all|to see))"
)
PAST = re.compile(r"\b(?:was|were|went|did|had|bought|decided|chose|loved|got|took|used to|tried|ended up|loves)\b")
SUPPOSED = re.compile(r"\b(?:suppose|imagine|what if|i wonder|wondering|maybe we|perhaps we|i guess|i think|might)\b")
IDIOM = re.compile(
    r"\bnever ?mind\b|\bas always\b|\bthan never\b|\balways (?:welcome|next year|a pleasure|been|had|was|were|"
    r"loved?|wanted|"
    r"remember|believe|be there|there|good to|great to|nice to|happy to|here for|look on the)\b|"
    r"\bnever (?:ever )?(?:give up|"
    r"quit|know|been|had|seen|heard|stop (?:dreaming|believing|learning)|too late|lose (?:hope|sight|heart)|"
    r"forget (?:how|what"
    r" you|who|the))\b|\b(?:i|we) don't know\b|\b(?:don't|do not|dont) (?:worry|think|get me wrong|hesitate|"
    r"be (?:sorry|afraid|shy|so hard|too hard"
    r"|scared)|care|mind|believe|see|understand|remember|feel|sweat|panic|stress|bother|give up|let (?:it|that|"
    r"them|this|anything|anyone|fear|the)|look now|beat yourself|miss|blame|quit|stop|lose hope|overthink|you)\b"
    r"|\bkeep (?:up|going|it up|me posted|me updated|you posted|in touch|pushing|chasing|trying|dreaming|smiling|"
    r"shining|"
    r"rocking|fighting|exploring|inspiring|doing what|being|on)\b|\bstay (?:tuned|safe|strong|positive|in touch|"
    r"true|awesome)\b"
    r"|\btake care\b|\btake your time\b|\bhave (?:fun|a (?:great|good|nice|look))\b|\byour (?:dreams?|heart|"
    r"passions?|goals?|"
    r"journey|family|health|feelings|mental|happiness|loved ones|well-?being|kids|mind off|life|friends)\b|"
    r"\b(?:be|of|in|on|treat|love|trust|believe|to|enjoy|push|see) yourself\b"
    r"|\bbe (?:proud|safe|well|happy)\b|\blet me know\b|\bstop by\b|\bcan't stop\b|\bgo for it\b|\bdo what you love\b"
    r"|\b(?:talk|speak|see|catch|chat)(?: to| with)? (?:you|ya|soon|later|up)\b|\bcount on me\b|\breach out\b|"
    r"\bmust(?:'ve| have)\b"
    r"|\bremember (?:when|how (?:we|you|i)|the time|those|back)\b|\bwish me\b|\bcan't wait\b|\bgood luck\b"
)
NO_IDIOM = re.compile(
    r"(?:.*?\b)no "
    + any_of(
        "problem problems prob doubts regrets worries rush idea way need needs thanks thank wonder doubt luck"
        " matter one longer clue pressure hurry"
        " kidding joke biggie offence offense questions change issue issues error errors difference success"
        " response answer result"
        " reason sense the it that this i we you they he she not don't wait but and so because just there what"
        " why go let's"
        " please use keep he's i'm it's that's sweat can such other pain big_deal not changes matter_how"
        " surprise objections"
    )
    + r"\b"
)

# Verbs that begin an instruction: of single pieces of work, and of the manner of all work.
WORK = any_of(
    "fix implement create build refactor update remove delete change investigate find deploy configure migrate"
    " rename move review"
    " analyze analyse debug optimize optimise design draft research search install upgrade generate extract"
    " solve compare open look"
    " try replace clean merge split send book order buy improve restart revert rebase continue proceed go add"
    " set make do get let"
    " help take apply enable disable finish import export download upload copy paste print close count calculate"
    " compute connect"
    " resolve summarise summarize translate proofread list plan schedule plot draw"
)
MANNER = any_of(
    "answer reply respond write speak talk explain keep be stay sound use skip drop cut limit start begin end"
    " format give put wrap"
    " round spell address call cite quote show include omit leave number act play pretend think treat refer say"
    " prefer stick assume"
    " sign name prefix suffix mark label tag indent capitalise capitalize hyphenate abbreviate express state"
    " mention tell ask check"
    " confirm wait run test verify validate document comment log remind warn alert notify follow respect obey"
    " consider remember note"
    " provide present return sort group structure organise organize highlight link attach double-check commit"
    " push stage squash"
    " favour favor choose pick default adhere conform restrict focus aim ensure avoid refrain report record save"
    " store back_up escape"
    " sanitise sanitize encrypt redact hide separate surround enclose pad align convert recap read repeat"
    " paraphrase simplify shorten"
    " expand point lead conclude greet thank criticise criticize challenge correct praise suggest offer propose"
    " recommend estimate"
    " measure have rebuild regenerate reformat bump pin type annotate cover mock stub reuse throw raise catch"
    " handle ignore seed"
    " version archive pay invite cc bcc stop pause flag colour color render hold break join fill insert phrase"
    " word render speak"
    " restate rephrase rewrite describe define deliver produce submit support accept reject refuse decline thank"
    " greet welcome keep_track"
    " describe illustrate visualise visualize demonstrate outline sketch draft detail specify clarify emphasise"
    " emphasize underline justify"
    " prioritise prioritize maintain preserve protect guard lock unlock reserve allocate budget spend tip cook"
    " serve bake wear pack carry"
    " train coach teach quiz grade mark tailor adapt adjust localise localize transliterate pronounce hyphenate"
    " punctuate quote_only"
    " combine separate isolate extract_no inject wire declare export expose throw return yield await assert"
    " guard fail exit retry poll"
    " batch throttle debounce paginate chunk stream buffer flush sync lint work feel try_to address acknowledge"
    " admit apologise apologize"
    " zoom crop resize compress shade anonymise anonymize mask scrub strip normalise normalize target squash"
    " rebase cherry-pick freeze"
    " kept used wrote answered stopped gave avoided using kept_to credit ground justify rank rate score trim"
    " strip lint benchmark profile trace cross-check translate summarise summarize"
)
_NOT_A_NOUN = r"(?!')(?!\s+(?:is|are|was|were|has|have|does|fails?|needs?|shows?|returns?|works?|looks?|seems?)\b)"
WORK_VERB = re.compile(rf"(?!do not\b|let's\b){WORK}\b")
MANNER_VERB = re.compile(rf"{MANNER}\b{_NOT_A_NOUN}")
VERB = re.compile(rf"(?:only |first |then |rather )?(?:{MANNER}|{WORK})\b{_NOT_A_NOUN}")
NEGATIVE = re.compile(
    r"(?:(?:don't|do not|dont|never|let's not|let us not|refrain from|avoid|not to)\b|you (?:mustn't|shouldn't|"
    r"can't|cannot|"
    r"may not|must not|should not|can not|are not (?:allowed )?to|must never|should never)\b|(?:i|we) (?:don't|"
    r"do not|never) want"
    r" (?:you|to see|any)\b)(?! (?:forget|worry)\b)"
)
_BARE_VERB = r"(?!\w+(?<!s)(?<!u)s\b|\w+ed\b(?<!embed)(?<!need))"
_NO_ADJECTIVE = (
    r"(?!\w+ing\b(?<!bring)|"
    + any_of(
        "here there up full fun a an the in on at so special calm great good nice happy say_never saw tried made"
        " got knew thought felt"
        " went came did was were been more less better worse enough quite this that my your for with from by and"
        " or but as ready true"
        " right wrong late early free open possible easy hard amazing worth old new again far close too_late i"
        " we you he she it they"
    )
    + r"\b)"
)
ALWAYS = re.compile(
    rf"(?:always|never|only ever|at all times|invariably|without exception)[\s,]+(?:please |ever |"
    rf"again )?{_BARE_VERB}{_NO_ADJECTIVE}[a-z]"
)
MODAL = re.compile(
    r"you(?:'re| are)? (?:must|should|shall|have to|need to|ought to|are to|to|will|may|can|are (?:allowed|"
    r"supposed|expected) to|"
    r"don't (?:need|have) to|needn't)\b|(?:make sure|be sure|ensure|see to it|let's|let us)\b"
    r"|i(?:'d| would)? (?:always |only )?(?:want|need|expect|like|prefer|require) (?:you|that you|all|every|each|"
    r"any|your|everything|"
    r"only)\b|it(?:'s| is) (?:important|essential|vital|mandatory|required|your job) (?:that|to)\b|i insist\b"
)
UNIVERSAL = re.compile(r"\b(?:always|never|every|each(?! other)|all|any)\b")
WE_USE = re.compile(
    r"we (?:always |only |never |all |don't |do not )?"
    + any_of(
        "use write name call say spell follow keep put prefer stick work format commit deploy test document log"
        " store avoid do ship"
    )
    + r"\b"
)

# What the agent writes or does. A norm about anything else is a requirement of a task.
OUTPUT = any_of(
    "answers? repl(?:y|ies) responses? explanations? summar(?:y|ies) commits? commit_messages? pull_requests?"
    " prs? branch(?:es)? names?"
    " messages? variables? identifiers? functions? function_names? class_names? class(?:es)? methods? modules?"
    " docstrings? tests? files?"
    " test_files? migrations? imports? comments? headings? headlines? titles? dates? times prices amounts units"
    " numbers figures recipes?"
    " measurements temperatures distances e?mails? letters? texts? translations? citations? sources drafts?"
    " captions? copy quotes"
    " plans? estimates? suggestions? recommendations? reports? charts? plots? diagrams? tables? scripts?"
    " documents? slides? lists?"
    " releases? changelog_entries subject_lines? file_names? filenames? sql(?:_keywords?)? code"
    " code_(?:blocks?|samples?|examples?|snippets?)"
    " links examples? error_messages? endpoints? keys constants queries docs documentation acronyms"
    " abbreviations invoices? meetings"
    " appointments paragraphs? sentences? lines shell_commands? commands? scripts notes minutes posts? tweets?"
    " bookings? itinerar(?:y|ies)"
)
AGENT_OUTPUT = re.compile(rf"\byou(?:r|rs)?\b|\b{OUTPUT}\b")
NO_DETERMINER = (
    r"(?!(?:the|this|that|these|those|my|our|his|her|their|its|some|two|three|a|an|no|is|are|i|we|and|one|many|"
    r"most)\b)"
)
NORM = re.compile(
    rf"(?:(?:all|every|each|any)\b(?: of)?(?: (?:the|your|my|our))?(?: [\w'/-]+){{1,7}}?|"
    rf"your (?:[\w'-]+ ){{0,2}}[\w'-]+|no {OUTPUT}"
    rf"|(?:{NO_DETERMINER}[\w'-]+ ){{0,2}}{NO_DETERMINER}{OUTPUT}) (?:must|should|shall|needs?(?: to)?|ha(?:s|"
    rf"ve) to|ought to)\b(?!(?: not)?"
    r" (?:have|be) (?:been|so|hard|nice|great|tough))"
    rf"|(?:{NO_DETERMINER}[\w'-]+ ){{0,2}}{NO_DETERMINER}{OUTPUT} (?:always |never |only )?(?:(?:are|"
    rf"is) (?:always |never |only )?(?:in|at|to be|"
    r"written|named|called|without|under|below|prefixed|formatted|sorted|kept|lower|upper|limited|signed)|"
    r"go(?:es)? (?:in|into|next|under|to|"
    r"below|after|before|at|on|last|first)|follows? (?!up)|begins? with|starts? with|ends? (?:with|in)|"
    r"belongs? (?:in|to)|lives? in|"
    r"in (?:lower|upper|snake|camel|kebab|pascal|present|past|imperative|\w+case|english|british|american|german|"
    r"french|spanish|euros|"
    r"dollars|metric|iso|json|markdown|the imperative|the present)|at most|no longer than|come (?:first|last))\b"
)
REPLY = re.compile(
    r"\byour?\b|\b(?:answers?|repl(?:y|ies)|responses?|explanations?|suggestions?|commits?|commit messages?|"
    r"pull requests?|prs)\b"
)
STYLE = re.compile(
    r"\b(?:"
    r"concise(?:ly)?|brief(?:ly)?|short(?:er)?|terse|succinct|blunt|direct|honest|formal(?:ly)?|informal|casual|"
    r"polite|friendly|neutral|"
    r"professional|playful|warm|tone|voice|jargon|buzzwords?|emojis?|smileys|bullets?|bullet points?|headings?|"
    r"headers?|prose|markdown|"
    r"tables?|json|yaml|html|latex|csv|plain text|(?:british|american|simple|plain|uk|us) (?:english|spelling)|"
    r"english|german|french|"
    r"spanish|italian|portuguese|dutch|polish|russian|chinese|mandarin|japanese|korean|arabic|turkish|hindi|"
    r"swedish|latin|words|"
    r"sentences?|paragraphs?|characters|lines|pleasantries|preambles?|introductions?|fillers?|fluff|disclaimers?|"
    r"caveats?|warnings|"
    r"apolog\w+|flatter\w*|compliment\w*|praise|step by step|metric|imperial|celsius|fahrenheit|kilomet(?:er|"
    r"re)s|euros|dollars|spelling|"
    r"decimals?|decimal places|options|suggestions|examples|sources|citations|footnotes|references|links|"
    r"answers?|repl(?:y|ies)|"
    r"responses?|explanations?|summar(?:y|ies)|to me|with me|the point|exclamation marks?|(?:em[- ])?dash(?:es)?|"
    r"semicolons?|"
    r"contractions|abbreviations|acronyms|passive voice|active voice|(?:first|second|third) person|(?:present|"
    r"past) tense|title case|"
    r"(?:lower|upper) ?case|capitals|all caps|sentence case|snake_case|camelcase|kebab-case|pascalcase|"
    r"type hints|docstrings?|comments|"
    r"one-liners|metaphors|sarcasm|humou?r|jokes|puns|slang|swear\w*|profanity|24-hour|iso 8601|bold|italics?|"
    r"oxford comma|indent\w*|"
    r"tabs|spaces|quotes|trailing commas?|like a \w+|as if i\b|like i'?m\b|at most|maximum of|no more than|"
    r"no longer than|fewer than|"
    r"less than|(?:under|below|within) \d+"
    r")\b"
)
GENERIC_OUTPUT = re.compile(
    rf"\b(?:your|all|every|each|any) (?:\w+ )?{OUTPUT}\b|\b(?:answers|replies|responses|explanations|summaries|"
    rf"commit messages|"
    r"code blocks|code samples|paragraphs|pull requests|docstrings)\b"
)

# Instructions that last by what they are about.
_NAMES = (
    r"(?:call|address) me(?! (?:when|if|back|later|tomorrow|tonight|at|on|crazy|old|once|after|before|a|an|"
    r"paranoid|stupid|lazy|maybe)\b)"
    r"|(?:address|refer to|treat) (?:me|us) (?:as|by|with|like)|refer to .{1,60} as\b|(?:call|name) (?:the|our|"
    r"my) .{1,40} [\"'“]"
    r"|my (?:name|word|term|nickname) for\b|(?:by|with) [\"'“]?.{1,40}[\"'”]? i (?:always )?mean\b"
    r"|[\"'“][^\"'”]{1,40}[\"'”] (?:means|stands for|refers to|is short for|is my)\b"
)
_ROLES = (
    r"(?:act|behave|speak|talk|write|respond|answer|think) (?:as|like|in the (?:style|voice|"
    r"role) of)\b(?! (?:above|before|described|"
    r"discussed|follows|soon|it|in|well)\b)|(?:your|the) (?:role|job) (?:here )?is to\b|you(?:'re| are|'ll be|"
    r" will be) (?:now )?(?:my|a|an|"
    r"the) (?:\w+ ){0,3}(?:teacher|tutor|coach|assistant|reviewer|editor|engineer|expert|mentor|critic|"
    r"translator|pair programmer|"
    r"architect|analyst|consultant|therapist|trainer|chef|guide|secretary|proofreader|opponent|advocate|"
    r"copywriter|librarian)\b"
    r"|(?:play|take|take on|assume|adopt) (?:the |on the )?(?:role|part|persona|devil's advocate)\b"
)
_CONSENT = (
    r"(?:the |my |our )?.{1,50}\b(?:is|are) (?:off[- ]limits|read-only for you|taboo|a no-go|not to be \w+ed|"
    r"forbidden|sacred|strictly"
    r" (?:forbidden|private|confidential))\b|hands off\b|keep your hands off\b|leave .{1,50} alone\b"
    r"|(?:ask|check with|consult|confirm with|run it by|clear it with|warn|tell|show|get (?:my|an?) (?:ok|"
    r"approval|permission|sign-?off)|"
    r"wait for my (?:ok|go|approval|confirmation|sign-?off|answer))\b.{0,40}\b(?:before|first|instead of)\b|"
    r"think twice before\b"
    r"|wait for my (?:ok|go|approval|confirmation|sign-?off|answer)\b"
)
_RECALL = (
    r"(?:remember|memori[sz]e|keep in mind|bear in mind|make a (?:mental )?note|take note|note|don't forget|"
    r"do not forget|never forget)"
    r"(?:,? (?:though|please|also|too|always))?(?:,|:| -)? (?:that\b|this:|the following|i(?:'m| am|'ve)?\b|"
    r"we(?:'re)?\b|my\b|our\b|"
    r"the \w+ (?:is|are|has|must)\b|all\b|every\b|never\b|always\b|for (?:later|the future|next))|for (?:future |"
    r"your )?reference\b"
)
LASTING = re.compile(
    rf"(?:{_NAMES}|{_ROLES}|{_CONSENT}|{_RECALL}"
    r"|(?:stop|quit|cease) (?:\w+ly )?(?!being|wait)\w+ing\b|enough (?:with|of) the\b|no more \w+"
    r"|(?:stick|adhere|conform|keep) (?:to|with)\b(?! (?:this|that|the (?:plan|first|second|current|old)))|"
    r"(?:prefer|opt for|favou?r)\b"
    r"|\w+ one \w+ at a time|never ever\b|one \w+(?: \w+)? per \w+)"
)
PREFERENCE = re.compile(
    r"(?:i|we) (?:really |much |strongly |always |generally |usually )?prefer\b.{1,100}?\b(?:over|to|rather than|"
    r"instead of|when you|for|"
    r"in|with|without|if you|that you|you)\b|(?:i|we)(?:'d| would) (?:much |always )?(?:rather|prefer) (?:you|"
    r"that you|if you|to see|to "
    r"have|not|have|get|see)\b|i like (?:my|your|it when you|it better when|to see|to have|having) \w+|"
    r"i (?:really )?(?:hate|dislike|can't "
    r"stand|don't like|do not like|loathe) (?:it )?(?:when you|if you|seeing|having|any|long|too|overly|"
    r"unnecessary|\w+s in\b)"
    r"|i love it when you\b|my (?:(?:strong |personal )?preference is|preferred|usual) \w+|i(?:'d|"
    r" would)? (?:want|need|expect|like|"
    r"require) (?:all|every|each|"
    r"any|your|answers|replies|responses|only) \w+|i (?:don't|do not|never) want (?:any|to see|to hear|to read|"
    r"you to|your)\b"
    r"|i only want\b|i want you to (?:always|never|be|act|think|treat|ask|stop|keep|use|speak|answer|reply|"
    r"respond|call|behave|challenge|"
    r"double|check|explain your|tell me|write in|avoid|assume|focus)\b"
)
ABOUT_AGENT = re.compile(
    r"\byou\b|\byour\b|\bmy (?:\w+ )?(?:code|answers|emails?|texts?|replies|data|files|recipes|tables|samples)\b"
)

# Conditions that can hold again and again.
USER_CONDITION = re.compile(
    r"\b(?:(?:when|if|once|as soon as|should|in case|every time|each time|any ?time|whenever) i (?:ever |then |"
    r"just |only |do |don't "
    r"|do not |have |haven't )?"
    + any_of(
        "say type write send ask paste mention give share use tell upload post call request forget make propose"
        " reply answer end"
        " start begin go seem sound reference refer drop add put attach quote speak switch swear complain"
        " describe greet leave want need"
        " am change correct contradict misspell miss explicitly"
    )
    + r"\w*)"
)
AGENT_CONDITION = re.compile(
    r"\b(?:(?:when|if|before|after|once|while|in case) you(?!(?:'re| are|'ve| have| get)? (?:like|want|wish|"
    r"agree|need|see fit|"
    r"prefer|can|could|don't mind|think so|finish(?:ed)? (?:this|that|it)|finished|done|ready|a chance|time|"
    r"through|back)\b)(?:'re| are|'ve| have)? \w+)"
    r"|\b(?:before|after|when|while) (?:\w+ly )?(?:commit|push|merg|deploy|writ|edit|chang|delet|creat|send|"
    r"answer|reply|respond|install|"
    r"suggest|propos|releas|mak|spend|book|buy|add|remov|start|finish|touch|cit|quot|explain|summari[sz]|test|"
    r"refactor|nam|us|review|"
    r"generat|updat|open|clos|migrat|translat|call|rewrit|cook|plan|schedul|estimat|draw|plot|cod)\w*ing\b"
)

# How to write: one word instead of another, an order, a convention.
INSTEAD = re.compile(
    r"(?:use|write|say|spell|type|choose|take|pick|name|call|go for|put|give|show|speak|talk|measure|quote|import)\b"
    r" .{1,80}?(?:,? (?:and )?(?:not|never)\b|\binstead of\b|\brather than\b|\bover\b|, no )|it(?:'s|"
    r" is) .{1,40}, not\b"
    r"|(?:\S+ ){1,4}?\S+, not (?:\S+ ?){1,4}[.!]?\Z"
)
ARTICLE = re.compile(r"\b(?:a|an|the|my|our)\b")
NO_SUCH = re.compile(r"(?:(?:and|but|please|also|okay|ok|absolutely|definitely|strictly),? )*no [a-z][^,;:]*")
CONVENTION = re.compile(
    r"(?:name|wrap|indent|prefix|suffix|capitali[sz]e|spell|round|format|tag|label|number|sign) (?!it|this|that|"
    r"the\b)\w+"
    r"|only (?:use|write|answer|reply|show|give|suggest|recommend|quote|cite|speak|include)\b|(?:less|fewer) \w+"
    r"|\w+(?: \w+){0,2} first, (?:then |and )?\w+"
)

_DIRECTIVES = (VERB, ALWAYS, NEGATIVE, MODAL, LASTING, PREFERENCE, WE_USE, NORM, CONVENTION)
DIRECTIVE = re.compile("|".join(f"(?:{pattern.pattern})" for pattern in _DIRECTIVES))
