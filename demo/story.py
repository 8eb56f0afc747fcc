"""The story: sixty turns of an agent that moves the booking site of a ferry line. Data only."""

from typing import Any, Literal, NamedTuple

Form = Literal["good", "fenced", "truncated", "missing", "unknown tier", "altered"]
Blocks = dict[str, list[dict[str, Any]]]

SYSTEM = "You move a booking site to a new server. Be brief, name files, and ask before you change anything for good."
WINDOW = 16_000
CHILD = "archivist"
CHILD_SECRET = "the draft ledger of 1987"  # said between the child and its tools, and to nobody else


class Call(NamedTuple):
    """A tool call."""

    name: str
    arguments: dict[str, Any]


class Step(NamedTuple):
    """One turn: the user's message, the model's tool calls, its answer and its memory blocks."""

    says: str
    answers: str
    batches: tuple[tuple[Call, ...], ...] = ()  # in sequence; the calls of a batch run in parallel
    blocks: Blocks | None = None
    form: Form = "good"


class Fact(NamedTuple):
    """A fact mentioned once and asked for much later; the question does not contain `words`."""

    words: str
    said: int
    asked: int
    query: str


FACTS = (
    Fact("HM-4471", 3, 41, "code of the harbour office"),
    Fact("NP-20931", 0, 23, "number of the insurance policy"),  # not said here: another agent put it into the memory
    Fact("05:40", 6, 52, "when may we switch over on Tuesday"),
    Fact("MAX_CARS = 38", 8, 49, "MAX_CARS tariffs.py"),
    Fact("30 November", 24, 55, "archivist old server switched off"),
    Fact("the prefix FR-", 13, 57, "prefix of the invoices, tax office"),
)
POLICY = "Nordpier is insured with Havtrygd; the number of the policy is NP-20931."
DOCUMENT = (
    "# Nordpier\n\n## Participants\n- Mara owns Nordpier.\n\n## Facts\n- Nordpier runs two ferries, Alk and Lunde.\n"
)


def read(*paths: str) -> tuple[Call, ...]:
    """Read files in parallel."""
    return tuple(Call("read_file", {"path": path}) for path in paths)


def tests(part: str) -> tuple[Call, ...]:
    """Run a part of the tests."""
    return (Call("run_tests", {"part": part}),)


def rows(table: str) -> tuple[Call, ...]:
    """Query a table."""
    return (Call("query", {"sql": f"select * from {table} limit 40"}),)


def log(name: str) -> tuple[Call, ...]:
    """Read a log."""
    return (Call("read_log", {"name": name}),)


def block(identity: str, kind: str, content: str, decay: float, confidence: float) -> dict[str, Any]:
    """A memory block as a model writes it; the round is added when it is sent."""
    known = {"id": identity, "type": kind, "decay": decay, "confidence": confidence}
    return {**known, "tags": [kind], "content": content}


def task(content: str) -> dict[str, Any]:
    """The block of the current task; its id never changes."""
    return block("work-001", "task", content, 0.3, 0.85)


MARA = block("core-001", "identity", "Mara owns the ferry line Nordpier.", 0.05, 0.95)
MAIL = block("core-002", "rule", "No mail to passengers before the harbour office agrees.", 0.1, 0.9)
MAIL_LATER = block("core-002", "rule", "Mail to passengers is allowed; the harbour office agreed.", 0.1, 0.95)
CROWNS = block("core-003", "fact", "All prices are in Norwegian crowns.", 0.15, 0.9)
PHONE = block("temp-001", "hint", "Mara is on the phone until noon.", 0.7, 0.6)
WINTER = block("work-002", "task", "Two rows of the winter tariff contradict each other.", 0.4, 0.8)
WINTER_DONE = block("work-002", "task", "Two rows of the winter tariff contradict each other.", 1.0, 0.8)
BERTH = block("temp-002", "hint", "The berth forms lie on Mara's inputs.", 0.7, 0.6)
SHELF = block("old-001", "note", "Something for a shelf nobody has.", 0.2, 0.9)
LAST = block("temp-003", "hint", "Mara reads the report tonight.", 0.6, 0.7)

STEPS = (
    Step(
        "I am Mara, I own the ferry line Nordpier. Please move our booking site to the new server.",
        "Gladly, Mara. I will move the booking site of Nordpier to the new server, step by step.",
        blocks={"core": [MARA], "working": [task("Move the booking site: look around.")], "ephemeral": [PHONE]},
    ),
    Step(
        "Look around first, please.",
        "The site is a small program: app.py takes the bookings, settings.py says where things are.",
        (read("README.md", "app.py"), read("settings.py")),
    ),
    Step("The harbour office lets us in with the code HM-4471.", "Noted: the code of the harbour office is HM-4471."),
    Step("How do the tests look?", "All tests of the bookings pass on the old server.", (tests("bookings"),)),
    Step("And the newest bookings?", "The newest forty bookings look complete.", (rows("bookings"),)),
    Step(
        "We may switch over on Tuesday between 05:40 and 06:10, when no ferry sails. No mail to passengers before.",
        "Understood: we switch over on Tuesday between 05:40 and 06:10, and nobody gets mail before.",
        blocks={"core": [MAIL]},
    ),
    Step("Who else reads the database?", "Only the booking site and the nightly report read it.", (log("database"),)),
    Step("Show me how prices are made.", "tariffs.py makes the prices, a table per season.", (read("tariffs.py"),)),
    Step("Is that tested?", "The tariffs have tests, and all of them pass.", (tests("tariffs"),)),
    Step(
        "Good. Then set up the new server.",
        "The new server is set up; the packages of the old one are installed there.",
        (read("deploy/packages.txt"), log("setup")),
        {"working": [task("Move the booking site: the new server is set up, copy the data next.")]},
    ),
    Step("Copy the data.", "The data is copied, 40 tables with the same number of rows.", (rows("tables"),)),
    Step(
        "Do the winter prices look right to you?",
        "No: two rows of the winter tariff contradict each other.",
        (rows("tariff_winter"),),
        {"working": [WINTER]},
    ),
    Step(
        "We decided to keep the prefix FR- on all invoices, because the tax office knows it.",
        "We keep the prefix FR- on all invoices.",
    ),
    Step("Where are invoices made?", "invoices.py makes them, one file per month.", (read("invoices.py"),)),
    Step("Which currency is that?", "All prices are in Norwegian crowns.", blocks={"core": [CROWNS]}, form="fenced"),
    Step(
        "I mended the winter rows myself.",
        "Then nothing contradicts itself any more.",
        (rows("tariff_winter"),),
        {"working": [WINTER_DONE]},
    ),
    Step("Run everything once.", "Everything passes on the new server.", (tests("all"),), form="truncated"),
    Step("Fine. Do we have backups?", "Yes, one every night, kept for a month.", (log("backup"),), form="missing"),
    Step("And payments?", "payments.py asks the bank for each booking.", (read("payments.py"),)),
    Step(
        "Thanks. How far are we?",
        "The server and the data are there; mail and payments are open.",
        blocks={"working": [task("Move the booking site: mail and payments are open.")]},
    ),
    Step(
        "How does mail leave the site?",
        "mail.py queues it, a program of its own sends it.",
        (read("mail.py"),),
        {"archive": [SHELF]},
        "unknown tier",
    ),
    Step("Is anything in the queue?", "The queue is empty.", (rows("mail_queue"),), form="altered"),
    Step("What is the number of our insurance policy? The port wants it.", "asked"),
    Step(
        "Let somebody go through the old archive: what do we still need of the old server?",
        "The archivist says: the old server can be switched off after 30 November.",
        ((Call("delegate", {"name": CHILD, "task": "Say what is still needed of the old server, and until when."}),),),
    ),
    Step("Does the bank know our new address?", "Not yet: its log still names the old one.", (log("bank"),)),
    Step("I told the bank. Try a payment.", "A payment of 1 crown went through.", (tests("payments"),)),
    Step("Look at the sign-in page.", "signin.py is fine; sessions last a day.", (read("signin.py"),)),
    Step(
        "The harbour office agreed: you may send mail now.",
        "Good, mail may be sent.",
        blocks={"core": [MAIL_LATER]},
    ),
    Step("Send a test mail to me.", "Sent; the log says it was delivered.", (log("mail"),)),
    Step("It arrived. Check the timetable.", "The timetable has all sailings.", (rows("sailings"),)),
    Step(
        "Where is the timetable made?",
        "timetable.py reads it from one table.",
        (read("timetable.py"),),
        {"working": [task("Move the booking site: mail and payments work, check the pages.")]},
    ),
    Step(
        "Remember for later, also in other chats: the mechanic of the Lunde is Ole Brekke.",
        "Ole Brekke is the mechanic of the Lunde; that is in the memory now.",
        ((Call("add_entry", {"raw_entry": "The mechanic of the Lunde is Ole Brekke.", "role": "user"}),),),
    ),
    Step("Are all pages in both languages?", "Yes, English and Norwegian.", (read("pages/en.py", "pages/no.py"),)),
    Step("Any errors since the copy?", "None; the warnings are about slow clients.", (log("web"),)),
    Step("How fast is it?", "The slowest page takes 0.3 seconds.", (tests("speed"),)),
    Step("Who may sign in as staff?", "Five people; the table lists them.", (rows("staff"),)),
    Step("Remove nobody. Look at the reports.", "reports.py runs every night.", (read("reports.py"),)),
    Step("Did last night's report run?", "Yes, with no error.", (log("reports"),)),
    Step("Compare it with the one of the old server.", "They say the same.", (rows("report_old"), rows("report_new"))),
    Step("What is left before Tuesday?", "The berth forms, and a last run of all tests."),
    Step("Then fill in the berth forms. Which code do they want from us?", "asked", (read("forms/berth.py"),)),
    Step(
        "Send them.",
        "The berth forms are sent.",
        (log("forms"),),
        {"working": [task("Move the booking site: forms sent, switch over next.")], "ephemeral": [BERTH]},
    ),
    Step("Check what they answered.", "The harbour office has them.", (rows("forms"),)),
    Step("Look at the queue of the bank again.", "The bank is fine.", (log("bank"),)),
    Step("And the certificates?", "They last until next summer.", (read("deploy/certificates.txt"),)),
    Step("Run all tests again.", "All pass.", (tests("all"),)),
    Step("Read me the plan of the switch.", "It has nine steps.", (read("deploy/plan.py"),)),
    Step("Who has to be awake?", "You, me, and somebody at the bank.", (rows("staff"),)),
    Step("A passenger wants to bring all her vans at once. What is the limit?", "asked"),
    Step("Right. Anything odd in the bookings?", "No, they look as they should.", (rows("bookings"),)),
    Step(
        "Prepare the switch.",
        "Prepared; nothing is changed yet.",
        (log("switch"),),
        {"working": [task("Move the booking site: the switch is prepared.")]},
    ),
    Step("When exactly may we switch over on Tuesday? The skipper asks.", "asked"),
    Step("It is time. Switch over.", "Switched: the new server answers.", (log("switch"), tests("smoke"))),
    Step("Do bookings arrive?", "Yes, the first ones are there.", (rows("bookings"),)),
    Step("How long must we keep the old server, as the archivist found?", "asked"),
    Step("Look at the mail queue.", "It is being sent.", (rows("mail_queue"),)),
    Step("The tax office is on the phone: which prefix do our invoices keep?", "asked"),
    Step("Check the first new invoice.", "It is right.", (read("invoices.py"),)),
    Step(
        "Write me a report.",
        "The site runs on the new server since Tuesday; the old one is kept as agreed.",
        blocks={"working": [task("The booking site is moved; watch it.")], "ephemeral": [LAST]},
    ),
    Step("Thank you, that was all.", "You are welcome, Mara. Fair winds."),
)
