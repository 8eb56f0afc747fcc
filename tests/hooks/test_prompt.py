"""UserPromptSubmit: what is about the prompt and not in the window, or nothing."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import daypack
from daypack.history.home import find_home
from daypack.hooks.call import HookCall, HostName
from daypack.hooks.hosts import HOSTS
from daypack.hooks.prompt import MAX_TOKENS, is_trivial, on_prompt
from daypack.hooks.recap.recap import Recap
from daypack.hooks.recap.writing import write_recap
from daypack.memory.project import project_memory
from daypack.memory.store.port import StoreFeed
from daypack.text.tokens import counter_named
from daypack.types.memory import About
from tests.hooks.coding_session import CodingSession

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
FACT = "The staging database listens on port 6543 behind pgbouncer, because 5432 is taken by the old replica."
QUESTION = "Which port does the staging database behind pgbouncer listen on?"
OTHERS = [
    "I renamed the OrderImporter to RowReader, since it reads returns as well.",
    "The nightly export writes Parquet files into the bucket shop-exports-eu.",
    "每次发布之前，部署脚本都会先备份生产数据库，然后再运行迁移。",
    "Ночная задача экспорта падает, если таблица возвратов пуста.",
    "Die Umsatzsteuer wird im Modul invoices auf zwei Stellen gerundet.",
    "रात का निर्यात खाली तालिका पर विफल हो जाता है।",
]


@pytest.fixture
def work(tmp_path: Path) -> CodingSession:
    return CodingSession(tmp_path)


def talk(work: CodingSession, *texts: str) -> None:
    for text in texts:
        work.user(text)
        work.agent("Understood, I will look at it now.")


def ready(work: CodingSession) -> None:
    """Do what a take-in does."""
    work.index()
    write_recap(work.session, work.project)


def remember(work: CodingSession, *texts: str, session: str = "codex/other") -> None:
    memory_id = project_memory(work.home, work.project)
    assert memory_id
    with daypack.open_memory(home=work.home.root, user="local") as memories:
        for text in texts:
            memories.add_entry(memory_id, text, about=About(session=session, role="user"))
        with memories.backend.indexes.use(StoreFeed(memories.backend.store, "local", memory_id)) as index:
            index.catch_up()


def ask(work: CodingSession, prompt: str, injected: tuple[str, ...] = ()) -> str:
    injection = on_prompt(work.hook("UserPromptSubmit", prompt=prompt), work.home, injected)
    return injection.text if injection else ""


def test_without_a_compaction_nothing_of_the_session_is_lost(work: CodingSession) -> None:
    talk(work, FACT, *OTHERS)
    ready(work)
    assert ask(work, QUESTION) == ""


def test_after_a_compaction_what_left_the_window_is_quoted(work: CodingSession) -> None:
    talk(work, FACT, *OTHERS)
    work.summary()
    ready(work)
    text = ask(work, QUESTION)
    assert f"[1 user] {FACT}" in text
    assert "daypack recall 5ac28188 --agent claude-code messages:N" in text
    assert "not instructions" in text
    assert "OrderImporter" not in text


def test_what_was_said_after_the_compaction_is_in_the_window(work: CodingSession) -> None:
    talk(work, *OTHERS)
    work.summary()
    talk(work, FACT)
    ready(work)
    assert ask(work, QUESTION) == ""


def test_the_summary_of_an_earlier_compaction_is_not_quoted(work: CodingSession) -> None:
    talk(work, *OTHERS)
    work.summary(f"This session is being continued from a previous conversation. {FACT}")
    talk(work, *OTHERS[:2])
    work.summary()
    ready(work)
    assert ask(work, QUESTION) == ""


def test_messages_that_the_host_kept_are_not_quoted(work: CodingSession) -> None:
    talk(work, FACT, *OTHERS)
    work.summary()
    ready(work)
    path = Path(work.session.layout.derived("recap"))
    recap = msgspec.json.decode(path.read_bytes(), type=Recap)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(recap, kept=(1,))))
    assert ask(work, QUESTION) == ""


def test_entries_of_other_sessions_are_quoted_and_those_of_this_one_are_not(work: CodingSession) -> None:
    remember(work, FACT, *OTHERS)
    text = ask(work, QUESTION)
    assert FACT in text
    assert "codex/other user]" in text
    assert "memory of the project shop" in text
    assert "no instructions" in text


def test_an_excerpt_has_no_blank_lines(work: CodingSession) -> None:
    first, _, second = FACT.partition(", ")
    remember(work, f"{first},\n\n \n\n\n{second}", *OTHERS)
    assert f"{first},\n  {second}" in ask(work, QUESTION)


@pytest.mark.parametrize(
    "heading",
    [
        "## The port of the staging database behind pgbouncer",
        "The port on which the staging database behind pgbouncer listens:",
        "**Port of the staging database behind pgbouncer**",
    ],
)
def test_a_heading_alone_is_not_quoted(work: CodingSession, heading: str) -> None:
    remember(work, heading, *OTHERS)
    assert ask(work, QUESTION) == ""
    remember(work, f"{heading}\n{FACT}")
    assert FACT in ask(work, QUESTION)


def test_what_is_far_less_about_the_prompt_than_the_best_is_left_out(work: CodingSession) -> None:
    less = "Nothing can listen behind the gateway of the database."
    tickets = [f"Ticket {number} renames column c{number} of table t{number}." for number in range(60)]
    remember(work, less, *tickets)
    assert less in ask(work, QUESTION)
    remember(work, FACT, *OTHERS)
    assert FACT in ask(work, QUESTION)
    assert less not in ask(work, QUESTION)


def test_entries_of_this_session_are_in_its_window(work: CodingSession) -> None:
    remember(work, FACT, session=f"claude-code/{work.name}")
    remember(work, *OTHERS)
    assert ask(work, QUESTION) == ""


def test_a_session_that_an_earlier_import_stored_elsewhere_is_the_same_session(tmp_path: Path) -> None:
    work = CodingSession(tmp_path)
    with daypack.open_session("imported", home=work.home.root, durability="os") as session:
        session.append("user", FACT)
    remember(work, FACT, session="default/imported")
    remember(work, *OTHERS)
    call = HookCall(host="claude", event="UserPromptSubmit", session="imported", cwd=str(work.folder), prompt=QUESTION)
    assert on_prompt(call, work.home) is None


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("Why was OrderImporter renamed to RowReader?", 0),
        ("发布之前部署脚本会不会备份生产数据库？", 2),
        ("Почему падает ночная задача экспорта, когда таблица возвратов пуста?", 3),
        ("Auf wie viele Stellen wird die Umsatzsteuer im Modul invoices gerundet?", 4),
        ("खाली तालिका पर रात का निर्यात विफल क्यों हो जाता है?", 5),
    ],
)
def test_prompts_of_any_language_find_what_they_are_about(work: CodingSession, prompt: str, found: int) -> None:
    remember(work, FACT, *OTHERS)
    text = ask(work, prompt)
    assert OTHERS[found] in text
    assert FACT not in text


@pytest.mark.parametrize(
    "prompt",
    [
        "How do I rotate the TLS certificates of Grafana?",
        "Write a haiku about autumn leaves and the moon.",
        "Run the linter, then commit and push everything.",
        "这个项目的许可证是什么？",
    ],
)
def test_nothing_is_said_about_what_nobody_spoke_of(work: CodingSession, prompt: str) -> None:
    remember(work, FACT, *OTHERS)
    talk(work, FACT, *OTHERS)
    work.summary()
    ready(work)
    assert ask(work, prompt) == ""


@pytest.mark.parametrize(
    "prompt",
    [
        *("", " ", "yes", "go on", "ok, do it", "Yes please!", "continue", "y", "1", "👍", "...", "???"),
        *("好的", "继续", "да", "weiter", "はい", "계속"),
        *("/compact", "/review the staging database port", "  /model opus", "/plugin:command staging database"),
        "<task-notification>the staging database listens on port 6543</task-notification>",
        "<system-reminder>staging database pgbouncer port</system-reminder>",
        "<local-command-stdout>staging database pgbouncer port</local-command-stdout>",
    ],
)
def test_trivial_prompts_and_commands_get_nothing(work: CodingSession, prompt: str) -> None:
    remember(work, FACT, *OTHERS, "yes", "go on", "好的", "да")
    assert ask(work, prompt) == ""


@pytest.mark.parametrize(
    "prompt", [QUESTION, "RowReader?", "/srv/app/rows.py fails on empty rows, why?", "数据库备份在哪里"]
)
def test_a_prompt_with_a_name_or_two_words_is_not_trivial(prompt: str) -> None:
    assert not is_trivial(prompt)


def test_what_an_editor_adds_to_a_prompt_is_not_asked_for(work: CodingSession) -> None:
    remember(work, FACT, *OTHERS)
    added = "<ide_opened_file>The user opened the staging database port pgbouncer 6543 replica</ide_opened_file>"
    assert ask(work, f"{added}\nfix this please") == ""
    assert FACT in ask(work, f"{added}\n{QUESTION}")


def test_a_prompt_with_any_number_of_open_tags_is_read_once(work: CodingSession) -> None:
    remember(work, FACT, *OTHERS)
    assert ask(work, "<system-reminder>" * 60_000) == ""  # searching for the end of each would take hours
    assert FACT in ask(work, f"<ide_a>{QUESTION}<ide_b></ide_c>")


def test_nothing_is_said_twice_in_one_window(work: CodingSession) -> None:
    talk(work, FACT, *OTHERS)
    work.summary()
    ready(work)
    remember(work, "The staging database behind pgbouncer listens on port 6543 since March.", *OTHERS)
    first = on_prompt(work.hook("UserPromptSubmit", prompt=QUESTION), work.home)
    assert first
    assert "messages:1" in first.items
    assert any(item.startswith("entry:") for item in first.items)
    assert on_prompt(work.hook("UserPromptSubmit", prompt=QUESTION), work.home, first.items) is None


def test_what_is_part_of_the_prompt_is_not_repeated(work: CodingSession) -> None:
    remember(work, FACT, *OTHERS)
    assert ask(work, f"Is this still true?\n\n> {FACT}\n") == ""


def test_the_same_text_is_quoted_once(work: CodingSession) -> None:
    talk(work, FACT, *OTHERS)
    work.summary()
    ready(work)
    remember(work, FACT, *OTHERS)
    assert ask(work, QUESTION).count(FACT) == 1


def test_what_daypack_said_before_is_not_found_again(work: CodingSession) -> None:
    remember(work, FACT, *OTHERS)
    said = ask(work, QUESTION)
    other = CodingSession(work.root, "copilot", "copilot")
    talk(other, f"{QUESTION}\n\n{said}", *OTHERS)
    other.summary()
    ready(other)
    with daypack.open_memory(home=work.home.root, user="local") as memories:
        memories.erase_memory(project_memory(work.home, work.project, create=False) or "")
    text = ask(other, "Tell me the port of the staging database behind pgbouncer, 5432 or another")
    assert FACT not in text


def test_secrets_are_redacted_even_where_an_excerpt_cuts_them(work: CodingSession) -> None:
    long = f"{FACT} Its token is {SECRET}. " + "The replica is read by the dashboards of the finance team. " * 40
    talk(work, long, *OTHERS)
    work.summary()
    ready(work)
    remember(work, f"{FACT} Use {SECRET} there.")
    text = ask(work, QUESTION)
    assert "6543" in text
    assert SECRET[:12] not in text
    assert "[redacted:github-token]" in text


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_the_text_stays_within_600_tokens_and_the_limit_of_the_host(tmp_path: Path, host: HostName) -> None:
    work = CodingSession(tmp_path, host=host)
    many = [
        f"{FACT} Reason {number}: {'the replica is slow and the staging database waits. ' * 12}" for number in range(8)
    ]
    talk(work, *many, *OTHERS)
    work.summary()
    ready(work)
    remember(work, *(f"Again: {text}" for text in many))
    text = ask(work, QUESTION)
    assert text
    assert counter_named("o200k_base").count(text) <= MAX_TOKENS
    assert HOSTS[host].fits("UserPromptSubmit", text)


def test_a_very_long_prompt_is_searched_by_its_ends(work: CodingSession) -> None:
    remember(work, FACT, *OTHERS)
    assert FACT in ask(work, "lorem ipsum " * 200_000 + QUESTION)


def test_a_session_without_index_or_recap_is_no_failure(work: CodingSession) -> None:
    assert ask(work, QUESTION) == ""
    talk(work, FACT)
    work.summary()
    write_recap(work.session, work.project)
    assert ask(work, QUESTION) == ""  # not indexed yet


def test_a_hook_writes_nothing(work: CodingSession) -> None:
    talk(work, FACT, *OTHERS)
    work.summary()
    ready(work)
    remember(work, *OTHERS)
    work.session.close()

    def state() -> dict[str, bytes]:
        files = (path for path in Path(work.home.root).rglob("*") if path.is_file() and not path.name.endswith("-shm"))
        return {str(path): path.read_bytes() for path in files}

    before = state()
    assert ask(work, QUESTION)
    assert {path for path, data in state().items() if data and before.get(path) != data} == set()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prompt=st.text(max_size=200) | st.sampled_from([QUESTION, *OTHERS]).map(lambda text: f"{text} {text}"))
def test_any_prompt_has_an_answer_within_the_limits(asked: CodingSession, prompt: str) -> None:
    text = ask(asked, prompt)
    assert counter_named("o200k_base").count(text) <= MAX_TOKENS


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> CodingSession:
    work = CodingSession(tmp_path_factory.mktemp("asked"))
    talk(work, FACT, *OTHERS)
    work.summary()
    ready(work)
    remember(work, FACT, *OTHERS)
    return work


def test_a_prompt_needs_no_tokenizer_no_numpy_and_no_turn(asked: CodingSession) -> None:
    code = (
        "import sys\n"
        "from daypack.history.home import find_home\n"
        "from daypack.hooks.call import HookCall\n"
        "from daypack.hooks.prompt import on_prompt\n"
        "home, session, cwd, prompt = sys.argv[1:]\n"
        "call = HookCall(host='claude', event='UserPromptSubmit', session=session, cwd=cwd, prompt=prompt)\n"
        "assert on_prompt(call, find_home(home))\n"
        "slow = ('splintr', 'numpy', 'argparse', 'tomllib', 'daypack.turn', 'daypack.session', 'daypack.importers')\n"
        "print([name for name in slow if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, asked.home.root, asked.name, str(asked.folder), QUESTION]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_prompt_of_a_session_that_is_unknown_creates_nothing(tmp_path: Path) -> None:
    home = find_home(tmp_path / "home")
    call = HookCall(host="codex", event="UserPromptSubmit", session="x/../y", cwd=str(tmp_path), prompt=QUESTION)
    assert on_prompt(call, home) is None
    assert not (tmp_path / "home").exists()
