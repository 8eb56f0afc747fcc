"""The Dockerfile, linted and followed line by line as far as that is possible without building it."""

import json
import re
import subprocess
import sys
from pathlib import Path

from docs.example_runs import ROOT
from memory_server import make_token, start_server

DOCKERFILE = ROOT / "Dockerfile"
TEXT = re.sub(r"\\\n\s*", "", DOCKERFILE.read_text(encoding="utf-8"))
LINES = [line.split(maxsplit=1) for line in TEXT.splitlines() if line and not line.startswith("#")]


def instructions(name: str) -> list[str]:
    """Return the arguments of an instruction, of the last stage first to last."""
    start = max(at for at, line in enumerate(LINES) if line[0] == "FROM")
    return [line[1] for line in LINES[start:] if line[0] == name]


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([hadolint, "--no-color", DOCKERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_data_is_under_data_and_belongs_to_a_user_who_is_not_root() -> None:
    [environment] = instructions("ENV")
    assert "DAYPACK_HOME=/data" in environment.split()
    assert instructions("VOLUME") == ["/data"]
    [user] = instructions("USER")
    assert int(user) > 0
    [run] = instructions("RUN")
    assert f"useradd --uid {user} " in run


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    copied = [source for line in LINES if line[0] == "COPY" for source in line[1].split()[:-1]]
    assert {"pyproject.toml", "src"} <= {*copied}
    assert all((ROOT / source).exists() for source in copied)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[1] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == {*copied}


def test_the_server_starts_with_the_command_and_the_health_check_tells_its_state(tmp_path: Path) -> None:
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["daypack"]
    serve, *options = json.loads(instructions("CMD")[0])
    assert serve == "serve"
    check = json.loads(instructions("HEALTHCHECK")[0].partition("CMD ")[2])
    [port] = instructions("EXPOSE")
    home = str(tmp_path / "data")
    make_token(home, "ada")
    with start_server(home, *options) as server:
        python, flag, code = check
        assert (python, flag) == ("python", "-c")
        code = code.replace(f":{port}/", f":{server.told['port']}/")
        assert str(server.told["port"]) in code
        subprocess.run([sys.executable, flag, code], check=True)
    assert subprocess.run([sys.executable, flag, code], capture_output=True, check=False).returncode == 1


def test_the_port_that_is_exposed_is_the_default() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "daypack", "serve", "--help"], capture_output=True, text=True, check=True
    )
    assert f"(default: {instructions('EXPOSE')[0]})" in done.stdout
