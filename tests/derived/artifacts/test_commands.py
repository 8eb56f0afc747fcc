"""Shell scripts: the files, tests and addresses of their commands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.derived.artifacts.commands import Done, read_commands
from daypack.derived.artifacts.shell import split, split_words
from daypack.derived.artifacts.test_runners import Count, Test, count_tests, covers, find_test


def done(script: str) -> Done:
    return read_commands(split(script))


def files(script: str) -> list[tuple[str, str]]:
    return [(one.verb, one.path) for one in done(script).touches]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("cat a.py b.py", [("read", "a.py"), ("read", "b.py")]),
        ("head -n 20 a.py | grep x", [("read", "a.py")]),
        ("tail -5 log.txt", [("read", "log.txt")]),
        ("sed -n '10,20p' src/a.py", [("read", "src/a.py")]),
        ("sed -i 's/a/b/' src/a.py", [("written", "src/a.py")]),
        ("rm -rf build/ 'my file.txt'", [("deleted", "build/"), ("deleted", "my file.txt")]),
        ("mv a.py b.py", [("deleted", "a.py"), ("created", "b.py")]),
        ("cp -r a b", [("read", "a"), ("created", "b")]),
        ("touch -d yesterday new.py", [("created", "new.py")]),
        ("echo hi | tee -a log.txt", [("written", "log.txt")]),
        ("python x.py > out.txt 2>&1", [("written", "out.txt")]),
        ("python x.py >> out.txt 2>/dev/null", [("written", "out.txt")]),
        ("wc -l < in.txt", [("read", "in.txt")]),
        ("git mv a.py b.py && git rm c.py", [("deleted", "a.py"), ("created", "b.py"), ("deleted", "c.py")]),
        ("git checkout -- a.py", [("written", "a.py")]),
        ("git checkout main", []),
        ("grep -rn 'foo.bar' src tests/x.py", [("read", "src"), ("read", "tests/x.py")]),
        ("rg -g '*.py' pattern src", [("read", "src")]),
        ("awk '{print $1}' data.tsv", [("read", "data.tsv")]),
        ("ls -la src && find lib -name '*.ex'", [("listed", "src"), ("listed", "lib")]),
        ("curl -sL https://a.org/x -o x.json", [("written", "x.json")]),
        ("sudo env A=1 timeout 5 cat /etc/hosts", [("read", "/etc/hosts")]),
        ("bash -lc 'cat a.py; rm b.py'", [("read", "a.py"), ("deleted", "b.py")]),
        ("x=$(cat version.txt); echo $x", [("read", "version.txt")]),
        ("for f in *.py; do rm $f; done; rm *.pyc", []),
        ("cat $FILE - /dev/stdin", []),
        ("# rm everything\ncat a  # and rm b", [("read", "a")]),
        ("if [ -f a ]; then\n  cat b\nfi", [("read", "b")]),
        ("cat a \\\n  b", [("read", "a"), ("read", "b")]),
        ("echo \"rm x; cat y\" && echo 'z > w'", []),
    ],
)
def test_a_script_names_its_files(script: str, expected: list[tuple[str, str]]) -> None:
    assert files(script) == expected


def test_lines_that_are_shown_are_known() -> None:
    shown = {
        one.path: (one.start, one.stop) for one in done("sed -n '10,20p' a; sed -n 7p b; head -n 30 c; cat d").touches
    }
    assert shown == {"a": (10, 20), "b": (7, 7), "c": (1, 30), "d": (0, 0)}


def test_a_here_document_is_the_text_of_its_file() -> None:
    script = "mkdir -p d\ncat > d/a.py <<'EOF'\nprint('$x')  # rm y\nEOF\ntee b.py <<END\nplain\nEND\ncat c.py\n"
    found = {one.path: (one.verb, one.content) for one in done(script).touches}
    assert found == {
        "d": ("created", None),
        "d/a.py": ("written", "print('$x')  # rm y\n"),
        "b.py": ("written", "plain\n"),
        "c.py": ("read", None),
    }


@pytest.mark.parametrize(
    "script",
    [
        "cat > a <<EOF\n$HOME\nEOF",  # the shell puts something in
        "cat >> a <<'EOF'\nx\nEOF",  # there is text before it
        "cat b - > a <<'EOF'\nx\nEOF",
    ],
)
def test_a_text_that_is_not_known_for_certain_is_not_known(script: str) -> None:
    assert [one.content for one in done(script).touches if one.path == "a"] == [None]


def test_what_stands_in_a_here_document_is_no_command() -> None:
    script = "git commit -m \"$(cat <<'EOF'\nfix: rm a.py; cat b.py > c.py\nEOF\n)\" && git push"
    assert files(script) == []
    assert done(script).does == ("git commit", "git push")


def test_a_script_is_compared_by_what_it_runs() -> None:
    assert done("cd /w && FOO=1 npm run build --silent 2>&1 | tail -5").does == ("npm run build",)
    assert done("git push -u origin x").does == done("cd a; git push").does == ("git push",)
    assert done("python a.py").does != done("python b.py").does
    assert done("make | tail").piped
    assert not done("make").piped


@pytest.mark.parametrize(
    ("script", "test"),
    [
        ("pytest", Test("pytest", ())),
        ("python -m pytest -x tests/a.py::test_b -n 4 2>&1 | tail -3", Test("pytest", ("tests/a.py::test_b",))),
        ("uv run pytest -q tests/ -p no:xdist", Test("pytest", ())),
        (".venv/bin/pytest -k 'a or b'", Test("pytest", ("-k a or b",))),
        ("python3.11 -m unittest tests.a", Test("unittest", ("tests.a",))),
        ("python manage.py test app", Test("manage.py test", ("app",))),
        ("npm test", Test("npm test", ())),
        ("go test -run=TestRows ./rows", Test("go test", ("-run TestRows", "./rows"))),
        ("npm run test:unit -- src/a", Test("npm test:unit", ("src/a",))),
        ("npx jest src/a.test.ts", Test("jest", ("src/a.test.ts",))),
        ("cargo test --all parser", Test("cargo test", ("parser",))),
        ("go test ./...", Test("go test", ())),
        ("go test -run TestX ./pkg", Test("go test", ("-run TestX", "./pkg"))),
        ("make test", Test("make test", ())),
        ("cd a && mix test test/a_test.exs", Test("mix test", ("test/a_test.exs",))),
        ("bundle exec rspec spec/a_spec.rb", Test("rspec", ("spec/a_spec.rb",))),
        ("./gradlew test", Test("gradlew test", ())),
    ],
)
def test_runs_of_tests_are_known(script: str, test: Test) -> None:
    assert done(script).tests == (test,)


@pytest.mark.parametrize(
    "script", ["npm install", "cargo build", "make", "python a.py", "echo pytest", "go run .", "cat test"]
)
def test_other_commands_are_no_runs_of_tests(script: str) -> None:
    assert done(script).tests == ()


@pytest.mark.parametrize(
    ("output", "count", "verdict"),
    [
        ("== 3 failed, 10 passed, 1 warning in 0.12s ==", Count(10, 3), False),
        ("5 passed in 0.10s", Count(5, None), True),
        ("== 2 passed, 1 error in 1s ==", Count(2, 1), False),
        ("Ran 4 tests in 0.1s\n\nOK\n", Count(4, 0), True),
        ("Ran 4 tests in 0.1s\n\nFAILED (failures=1, errors=1)\n", Count(3, 1), False),
        ("Tests:       1 failed, 2 passed, 3 total", Count(2, 1), False),
        (" Tests  2 passed (2)", Count(2, None), True),
        ("  12 passing (30ms)\n  1 failing\n", Count(12, 1), False),
        ("test result: ok. 7 passed; 0 failed; 0 ignored", Count(7, 0), True),
        ("test result: FAILED. 6 passed; 1 failed;", Count(6, 1), False),
        ("ok  \texample.com/a\t0.1s", Count(None, 0), True),
        ("--- FAIL: TestX (0.00s)\nFAIL\texample.com/a\t0.1s\nFAIL", Count(None, 1), False),
        ("14 doctests, 73 tests, 0 failures", Count(73, 0), True),
        ("5 tests, 4 failures", Count(1, 4), False),
        ("10 examples, 2 failures", Count(8, 2), False),
        ("Tests run: 5, Failures: 0, Errors: 0, Skipped: 0", Count(5, 0), True),
        ("Passed!  - Failed:     0, Passed:     5", Count(5, 0), True),
        ("# pass 3\n# fail 1\n", Count(3, 1), False),
        ("collected nothing of interest", Count(None, None), None),
        ("", Count(None, None), None),
    ],
)
def test_the_end_of_an_output_tells_how_tests_went(output: str, count: Count, *, verdict: bool | None) -> None:
    found = count_tests(f"a line\n{output}")
    assert found.verdict is verdict
    assert found == count


@pytest.mark.parametrize(
    "script",
    [
        '"' * 40_000,
        "'\"" * 40_000,
        "<<A\n" * 20_000,
        "$(" * 20_000,
        '\\"' * 40_000,
        "a\\",
        "((((",
        "<<9999999999",
        "<< 7",
        ">",
        "| |",
    ],
)
def test_hostile_scripts_are_read_in_one_pass(script: str) -> None:
    assert all(one.path for one in done(script).touches)


@given(st.text(st.characters()))
def test_any_text_is_a_script(text: str) -> None:
    for touch in done(text).touches:
        assert touch.path


@given(st.text(st.sampled_from("ab \n'\"\\<>|&;()$#=-EOF{}`")))
def test_any_mixture_of_signs_is_a_script(text: str) -> None:
    done(text)
    done(f"cat <<EOF\n{text}\nEOF")


@given(st.lists(st.text(st.characters()), max_size=6))
def test_any_list_of_words_is_a_command(words: list[str]) -> None:
    read_commands(split_words(tuple(words)))
    if words:
        find_test(words)


@given(st.text(st.characters(codec="utf-8")))
def test_any_output_is_counted(output: str) -> None:
    count_tests(output)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("go test ./...", "go test -run TestRows ./rows"),
        ("go test ./rows/...", "go test -run=TestRows -v ./rows/empty"),
        ("go test -run TestRows ./rows", "go test -run TestRowsEmpty ./rows"),
        ("pytest tests/api", "python -m pytest tests/api/test_rows.py::test_empty"),
        ("pytest tests/api/test_rows.py", "pytest tests/api/test_rows.py -k empty"),
        ("npm test", "npm t -- src/rows.test.ts"),
        ("pytest -m fast", "pytest -m fast tests/api"),
    ],
)
def test_a_wider_run_includes_a_narrower_one_and_not_the_other_way_round(wide: str, narrow: str) -> None:
    (outer,), (inner,) = done(wide).tests, done(narrow).tests
    assert covers(outer, inner)
    assert not covers(inner, outer)


@pytest.mark.parametrize(
    ("later", "former"),
    [
        ("npm test", "pytest tests/api"),
        ("pytest tests/api", "pytest tests/apiary"),
        ("pytest tests/api", "pytest -k empty"),
        ("pytest -k 'not empty'", "pytest -k empty"),
        ("pytest -m fast", "pytest tests/api"),
        ("go test -run 'A|B' ./rows", "go test -run A ./rows"),
    ],
)
def test_a_run_of_other_tests_includes_nothing(later: str, former: str) -> None:
    (outer,), (inner,) = done(later).tests, done(former).tests
    assert not covers(outer, inner)
