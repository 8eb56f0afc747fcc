"""The folder of models: pulled once, from the first repository that has the file."""

import hashlib
from pathlib import Path

import pytest
from scripted_endpoint import NOT_FOUND, Endpoint, Reply, Seen

from daypack.errors import BadConfig, ModelMissing
from daypack.llm.models.catalogue import find_model
from daypack.llm.models.folder import HUB, addresses, find_hub, list_files, pull, read_origin

DATA = b"GGUF" + bytes(1000)
DIGEST = hashlib.sha256(DATA).hexdigest()
MODEL = find_model("qwen3-1.7b")


def serve(*paths: str) -> Endpoint:
    def answer(seen: Seen) -> Reply:
        return Reply(DATA, 200, {"X-Linked-ETag": f'"{DIGEST}"'}) if seen.path in paths else NOT_FOUND

    return Endpoint(answer)


@pytest.mark.requirement("S1-M2")
def test_the_default_model_comes_from_its_makers_repository(tmp_path: Path) -> None:
    with serve("/Qwen/Qwen3-1.7B-GGUF/resolve/main/Qwen3-1.7B-Q4_K_M.gguf") as hub:
        fetched, new = pull(MODEL, str(tmp_path), hub=hub.url)
        assert new
        assert fetched.verified == "hub"
        assert (tmp_path / "Qwen3-1.7B-Q4_K_M.gguf").read_bytes() == DATA
        again, new = pull(MODEL, str(tmp_path), hub=hub.url)
        assert (again, new) == (fetched, False)
        assert len(hub.seen) == 1
    assert addresses(MODEL, HUB)[0] == f"{HUB}/Qwen/Qwen3-1.7B-GGUF/resolve/main/Qwen3-1.7B-Q4_K_M.gguf"


def test_the_next_repository_is_asked_when_the_first_does_not_have_the_file(tmp_path: Path) -> None:
    second = addresses(MODEL, "")[1]
    with serve(second) as hub:
        fetched, _ = pull(MODEL, str(tmp_path), hub=hub.url)
    assert fetched.url == hub.url + second
    assert list_files(str(tmp_path)) == {MODEL.file: len(DATA)}
    with serve() as hub, pytest.raises(ModelMissing):
        pull(find_model("gemma-3-1b"), str(tmp_path), hub=hub.url)
    assert len(hub.seen) == 2


def test_an_address_of_a_file_is_that_file(tmp_path: Path) -> None:
    with serve("/mine.gguf") as hub:
        fetched, _ = pull(MODEL, str(tmp_path), hub=f"{hub.url}/mine.gguf", sha256=DIGEST)
    assert fetched.verified == "given"
    assert read_origin(str(tmp_path / MODEL.file)) == fetched


def test_a_file_that_is_not_as_it_was_fetched_is_fetched_again(tmp_path: Path) -> None:
    with serve("/mine.gguf") as hub:
        url = f"{hub.url}/mine.gguf"
        pull(MODEL, str(tmp_path), hub=url)
        (tmp_path / MODEL.file).write_bytes(b"GGUF")
        assert read_origin(str(tmp_path / MODEL.file)) is None
        assert pull(MODEL, str(tmp_path), hub=url)[1]
        assert not pull(MODEL, str(tmp_path), hub=url, sha256=DIGEST.upper())[1]
    assert (tmp_path / MODEL.file).read_bytes() == DATA


def test_the_hub_is_named_by_an_argument_or_the_environment() -> None:
    assert find_hub(None, {}) == HUB
    assert find_hub(None, {"DAYPACK_MODEL_HUB": "http://mirror:80/hub/"}) == "http://mirror:80/hub"
    assert find_hub("https://a.example", {"DAYPACK_MODEL_HUB": "http://b"}) == "https://a.example"
    for wrong in ("mirror", "ftp://a", "https://", "https://me:pa55@a"):
        with pytest.raises(BadConfig, match="not an address"):
            find_hub(wrong, {})
    with pytest.raises(BadConfig, match="is not a sha256"):
        pull(MODEL, "/nowhere", sha256="abc")


def test_a_folder_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert list_files(str(tmp_path / "model")) == {}
