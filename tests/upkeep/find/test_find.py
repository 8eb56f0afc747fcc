"""`find`: one search over all sessions of all agents."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import daypack
from daypack.errors import BadInput
from daypack.history.across_sessions import forget_index
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.upkeep.find import Filters, Found, find

_PORT = "Port 8080 was taken by the old proxy, so I changed listen_port to 8093 in deploy/server.toml."


@pytest.fixture
def place(home: str) -> Home:
    """The home of the sessions."""
    return find_home(home)


def _write(home: Home, agent: str, name: str, texts: Sequence[tuple[str, str]], cwd: str = "") -> None:
    with daypack.open_session(
        name, agent=agent, home=home.root, uid=home.uid, durability="os", workspace=cwd or ""
    ) as session:
        for role, text in texts:
            session.append(role, text)
    if cwd:
        Path(home.session(agent, name).cwd).write_text(f"{cwd}\n", encoding="utf-8")


@pytest.fixture
def agents(place: Home) -> Home:
    """Sessions of three agents."""
    _write(
        place,
        "claude-code",
        "deploy",
        [
            ("user", "The server does not start on the staging machine."),
            ("assistant", _PORT),
            ("user", "Thanks, it works now."),
        ],
    )
    _write(
        place,
        "codex",
        "harbour",
        [("user", "Draw the tide table of Quiberon as a chart."), ("assistant", "The chart is in out/tides.svg.")],
    )
    _write(place, "default", "harbour--colours", [("user", "Which colours do the lamps of the harbour have?")])
    return place


def _places(found: Found) -> list[tuple[str, str, int]]:
    return [(hit.agent, hit.session, hit.seq) for hit in found.hits]


def test_a_question_finds_the_message_that_answers_it_in_any_session(agents: Home) -> None:
    found = find(agents, "where did we fix the port?")
    assert _places(found)[0] == ("claude-code", "deploy", 2)
    hit = found.hits[0]
    assert (hit.role, hit.line, hit.id) == ("assistant", _PORT, "msg-2")
    assert hit.command == ("daypack", "log", "claude-code/deploy", "--around", "2")
    assert [hit.line[start:stop].lower() for start, stop in hit.marks] == ["port", "port"]
    assert hit.score == pytest.approx(sum(hit.parts.values()))
    assert (found.sessions, found.messages, found.complete) == (3, 6, True)


def test_sessions_of_child_agents_are_searched(agents: Home) -> None:
    assert _places(find(agents, "colours of harbour lamps"))[0] == ("default", "harbour--colours", 1)


@pytest.mark.parametrize("query", ["listenPort", "listen_port", "--listen-port", "server.toml", "8093"])
def test_identifiers_paths_and_numbers_are_found_however_they_are_spelled(agents: Home, query: str) -> None:
    assert _places(find(agents, query))[0] == ("claude-code", "deploy", 2)


def test_the_words_of_an_identifier_find_it(place: Home) -> None:
    _write(place, "codex", "code", [("assistant", "I renamed retryWindowSeconds in client.ts.")])
    assert _places(find(place, "retry window")) == [("codex", "code", 1)]


def test_a_query_about_nothing_that_was_said_finds_nothing(agents: Home) -> None:
    assert find(agents, "zeppelin hangar insurance").hits == ()
    assert find(agents, "what did we say about the zeppelin?").hits == ()


def test_an_empty_home_has_no_results(place: Home) -> None:
    assert find(place, "anything") == Found((), 0, 0)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("潮汐表在哪里", "布雷斯特的潮汐表在 data/tides.csv 中。"),
        ("灯台の色", "港の灯台の色は赤と緑です。"),
        ("등대 색깔", "항구의 등대는 색깔이 빨간색입니다."),
        ("Hafengebühr", "Die Hafengebuehr heißt hafengebühr und beträgt 12 Euro."),
        ("ecole", "L'école ouvre à huit heures."),
    ],
)
def test_other_scripts_and_accents_are_found(agents: Home, query: str, text: str) -> None:
    _write(agents, "qwen", "elsewhere", [("user", "Hello."), ("user", text)])
    assert _places(find(agents, query))[0] == ("qwen", "elsewhere", 2)


def test_a_query_with_a_date_finds_what_was_said_then(place: Home) -> None:
    folder = place.session("codex", "dated")
    os.makedirs(folder.folder)
    lines = [
        {"seq": 1, "ts": "2024-03-05T10:00:00Z", "role": "user", "content": "We release the lamp firmware."},
        {"seq": 2, "ts": "2024-09-17T10:00:00Z", "role": "user", "content": "We release the lamp firmware again."},
    ]
    Path(folder.messages).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert find(place, "lamp firmware release 2024-03-05").hits[0].seq == 1
    assert find(place, "lamp firmware released on 17 September 2024").hits[0].seq == 2


def test_many_matches_of_one_session_do_not_hide_those_of_others(agents: Home) -> None:
    _write(agents, "codex", "talkative", [("user", f"The port of machine {number} is free.") for number in range(9)])
    found = find(agents, "port of machine", limit=10)
    assert [hit.session for hit in found.hits].count("talkative") == 3
    assert [hit.more for hit in found.hits if hit.session == "talkative"] == [0, 0, 6]
    assert "deploy" in [hit.session for hit in found.hits]


def test_filters_choose_agent_role_and_time(agents: Home) -> None:
    assert {hit.agent for hit in find(agents, "chart of the tide table", Filters(agents=("codex",))).hits} == {"codex"}
    assert find(agents, "port of the server", Filters(agents=("codex",))).hits == ()
    assert {hit.role for hit in find(agents, "tide chart", Filters(roles=("assistant",))).hits} == {"assistant"}
    assert find(agents, "port of the server", Filters(until="2001-01-01")).hits == ()
    assert find(agents, "port of the server", Filters(since="yesterday")).hits
    with pytest.raises(BadInput, match="no session has the agent 'codx'"):
        find(agents, "port", Filters(agents=("codx",)))


def test_all_worktrees_of_a_repository_are_one_project(place: Home, tmp_path: Path) -> None:
    main, other = tmp_path / "src" / "lamp", tmp_path / "elsewhere"
    main.mkdir(parents=True)
    git = ["git", "-C", str(main), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(other)], check=True)
    _write(place, "codex", "one", [("user", "The lens of the lamp is cracked.")], cwd=str(main))
    _write(place, "codex", "two", [("user", "The lens of the lamp is new.")], cwd=str(other))
    _write(place, "codex", "three", [("user", "The lens of the lamp is in the post.")], cwd=str(tmp_path))
    for project in (str(main), str(other), "lamp", f"{main}/"):
        found = find(place, "lens of the lamp", Filters(project=project))
        assert {hit.session for hit in found.hits} == {"one", "two"}, project
        assert {hit.project for hit in found.hits} == {"lamp"}
    with pytest.raises(BadInput, match="no session belongs to the project 'lmp'") as refused:
        find(place, "lens", Filters(project="lmp"))
    assert refused.value.hint == "did you mean lamp?"


def test_secrets_in_a_line_are_redacted(place: Home) -> None:
    secret = "ghp_" + "a1B2" * 9
    _write(place, "codex", "leak", [("user", f"The deploy token of the lamp is {secret} until Friday.")])
    hit = find(place, "deploy token of the lamp").hits[0]
    assert secret not in hit.line
    assert "[redacted:" in hit.line


def test_deleted_sessions_and_erased_words_are_not_found(agents: Home) -> None:
    assert find(agents, "tide table of Quiberon").hits
    for name in os.listdir(agents.session("codex", "harbour").folder):
        path = os.path.join(agents.session("codex", "harbour").folder, name)
        if os.path.isfile(path):
            os.unlink(path)
    assert find(agents, "tide table of Quiberon").hits == ()
    forget_index(agents.find_index)
    assert not os.path.exists(agents.find_index)
    assert find(agents, "port").hits


@pytest.fixture
def sessions_of_one(place: Home) -> Home:
    """A session whose question and answer have no word in common."""
    texts = [("user", "How do we mount the Fresnel lens?"), ("assistant", "With four brass screws, from below.")]
    _write(place, "codex", "lens", texts)
    return place


def test_the_answer_after_a_question_is_found_with_it(sessions_of_one: Home) -> None:
    assert {hit.seq for hit in find(sessions_of_one, "mounting the Fresnel lens").hits} >= {1}
    found = find(sessions_of_one, "Fresnel lens screws")
    assert {hit.seq for hit in found.hits} == {1, 2}


@pytest.mark.parametrize(
    "query",
    [
        'port" OR "server',
        "NEAR(port server)",
        "words:port",
        "^port*",
        "port\0server",
        "port \ud800",
        "port " * 200_000,
        "port " + "x" * 1_000_000,
    ],
    ids=["quotes", "near", "column", "star", "nul", "surrogate", "many", "long"],
)
def test_a_query_is_words_whatever_its_syntax_and_length(agents: Home, query: str) -> None:
    assert ("claude-code", "deploy", 2) in _places(find(agents, query))


def test_secrets_are_shown_in_no_field(place: Home) -> None:
    token = "ghp_" + "a1B2" * 9
    _write(place, "default", "keys", [("user", f"The lighthouse token is {token} today.")], cwd=f"/srv/{token}")
    hit = find(place, "lighthouse token").hits[0]
    assert token not in repr(hit)
    assert (hit.project, hit.cwd) == ("[redacted:github-token]", "/srv/[redacted:github-token]")
