"""Downloads: cut off, gone on with, changed on the way, checked, and never half under the final name."""

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_endpoint import Endpoint, Reply, Seen

from daypack.errors import ModelFailed, ModelMissing, WriteFailed
from daypack.llm.models.download import RETRY, Fetched, fetch

DATA = bytes(range(256)) * 4000
DIGEST = hashlib.sha256(DATA).hexdigest()
OTHER = b"another file" * 50_000


class Files:
    """A file server with ranges; `cuts` are the bytes it sends before each break, `announced` its digest."""

    def __init__(self, data: bytes = DATA, etag: str = '"one"') -> None:
        self.data = data
        self.etag = etag
        self.announced = ""
        self.cuts: list[int] = []
        self.ranges = True
        self.careless = False  # does not look at If-Range

    def __call__(self, seen: Seen) -> Reply:
        if seen.path != "/file.gguf":
            return Reply(b"", 404)
        headers = {"ETag": self.etag} if self.etag else {}
        if self.announced:
            headers["X-Linked-ETag"] = f'"{self.announced}"'
        cut = self.cuts.pop(0) if self.cuts else None
        asked = seen.headers.get("range", "")
        same = seen.headers.get("if-range", self.etag) == self.etag
        if not asked or not (same or self.careless) or not self.ranges:
            return Reply(self.data, 200, headers, cut)
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(self.data):
            return Reply(b"", 416, {"Content-Range": f"bytes */{len(self.data)}"})
        headers["Content-Range"] = f"bytes {start}-{len(self.data) - 1}/{len(self.data)}"
        return Reply(self.data[start:], 206, headers, cut)


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def endpoint(files: Files) -> Iterator[Endpoint]:
    with Endpoint(files) as endpoint:
        yield endpoint


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "model" / "file.gguf")


def get(endpoint: Endpoint, path: str, **more: str) -> Fetched:
    return fetch(f"{endpoint.url}/file.gguf", path, retry=RETRY._replace(pause_seconds=0.001), **more)  # pyright: ignore[reportArgumentType]


def starts(endpoint: Endpoint) -> list[str]:
    return [seen.headers.get("range", "") for seen in endpoint.seen]


def names(path: str) -> list[str]:
    return sorted(os.listdir(os.path.dirname(path)))


def test_a_file_is_fetched_recorded_and_private(endpoint: Endpoint, path: str) -> None:
    shown: list[tuple[int, int]] = []
    fetched = fetch(f"{endpoint.url}/file.gguf", path, progress=lambda done, total: shown.append((done, total)))
    assert fetched == Fetched(f"{endpoint.url}/file.gguf", DIGEST, len(DATA), "")
    assert Path(path).read_bytes() == DATA
    assert json.loads(Path(f"{path}.json").read_bytes())["sha256"] == DIGEST
    assert names(path) == ["file.gguf", "file.gguf.json"]
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert shown[-1] == (len(DATA), len(DATA))
    assert [done for done, _ in shown] == sorted({done for done, _ in shown})


def test_a_download_that_is_cut_off_goes_on_where_it_stopped(endpoint: Endpoint, files: Files, path: str) -> None:
    files.cuts = [100_000, 50_000, 0, 1]
    assert get(endpoint, path).sha256 == DIGEST
    assert Path(path).read_bytes() == DATA
    assert starts(endpoint) == ["", "bytes=100000-", "bytes=150000-", "bytes=150000-", "bytes=150001-"]
    assert [seen.headers.get("if-range") for seen in endpoint.seen] == [None, *['"one"'] * 4]


def test_it_goes_on_in_another_process_too(endpoint: Endpoint, files: Files, path: str) -> None:
    files.cuts = [300_000] + [0] * RETRY.attempts
    with pytest.raises(ModelFailed, match=r"cut off.*resumes"):
        get(endpoint, path)
    assert names(path) == ["file.gguf.part", "file.gguf.part.json"]
    assert get(endpoint, path).sha256 == DIGEST
    assert starts(endpoint)[-1] == "bytes=300000-"
    assert names(path) == ["file.gguf", "file.gguf.json"]


def test_an_interrupted_download_goes_on(endpoint: Endpoint, files: Files, path: str) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(f"{endpoint.url}/file.gguf", path, progress=interrupt)
    kept = os.path.getsize(f"{path}.part")
    assert 0 < kept < len(DATA)
    assert get(endpoint, path).sha256 == DIGEST
    assert starts(endpoint) == ["", f"bytes={kept}-"]


def test_a_part_that_is_whole_already_is_only_checked(endpoint: Endpoint, path: str) -> None:
    os.makedirs(os.path.dirname(path))
    Path(f"{path}.part").write_bytes(DATA)
    note = {"url": f"{endpoint.url}/file.gguf", "etag": '"one"', "size_bytes": len(DATA)}
    Path(f"{path}.part.json").write_text(json.dumps(note), encoding="utf-8")
    assert get(endpoint, path).sha256 == DIGEST
    assert len(endpoint.seen) == 1


@pytest.mark.parametrize("etag", ['"two"', 'W/"two"', ""])
def test_a_file_that_changed_meanwhile_is_fetched_anew(endpoint: Endpoint, files: Files, path: str, etag: str) -> None:
    files.cuts = [300_000] + [0] * RETRY.attempts
    with pytest.raises(ModelFailed):
        get(endpoint, path)
    files.data, files.etag = OTHER, etag
    assert get(endpoint, path).sha256 == hashlib.sha256(OTHER).hexdigest()
    assert Path(path).read_bytes() == OTHER


def test_a_server_that_does_not_look_whether_it_changed_is_found_out(
    endpoint: Endpoint, files: Files, path: str
) -> None:
    files.cuts = [300_000] + [0] * RETRY.attempts
    with pytest.raises(ModelFailed):
        get(endpoint, path)
    files.data, files.etag, files.careless = OTHER, '"two"', True
    assert get(endpoint, path).sha256 == hashlib.sha256(OTHER).hexdigest()


def test_a_file_that_got_shorter_meanwhile_is_fetched_anew(endpoint: Endpoint, files: Files, path: str) -> None:
    files.cuts = [300_000] + [0] * RETRY.attempts
    with pytest.raises(ModelFailed):
        get(endpoint, path)
    files.data = DATA[:1000]
    assert get(endpoint, path).size_bytes == 1000


def test_another_digest_at_the_hub_means_another_file(endpoint: Endpoint, files: Files, path: str) -> None:
    files.etag, files.announced = "", DIGEST  # no ETag to compare by
    files.cuts = [300_000] + [0] * RETRY.attempts
    with pytest.raises(ModelFailed):
        get(endpoint, path)
    files.data, files.announced = OTHER, hashlib.sha256(OTHER).hexdigest()
    assert get(endpoint, path).verified == "hub"
    assert Path(path).read_bytes() == OTHER


@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_without_a_name_for_the_content_it_begins_anew(endpoint: Endpoint, files: Files, path: str, etag: str) -> None:
    files.etag = etag
    files.cuts = [300_000] + [0] * RETRY.attempts
    with pytest.raises(ModelFailed):
        get(endpoint, path)
    before = len(endpoint.seen)
    assert get(endpoint, path).sha256 == DIGEST
    assert starts(endpoint)[before:] == [""]


def test_a_server_without_ranges_is_read_from_the_start(endpoint: Endpoint, files: Files, path: str) -> None:
    files.ranges = False
    files.cuts = [300_000]
    assert get(endpoint, path).sha256 == DIGEST


def test_a_torn_note_or_foreign_bytes_are_not_built_upon(endpoint: Endpoint, path: str) -> None:
    os.makedirs(os.path.dirname(path))
    Path(f"{path}.part").write_bytes(b"junk")
    Path(f"{path}.part.json").write_bytes(b'{"url":')
    assert get(endpoint, path).sha256 == DIGEST
    Path(f"{path}.part").write_bytes(b"junk")
    Path(f"{path}.part.json").write_text('{"url":"http://elsewhere/file.gguf","etag":"\\"one\\""}', encoding="utf-8")
    assert get(endpoint, path).sha256 == DIGEST
    assert starts(endpoint) == ["", ""]


def test_the_bytes_are_compared_with_the_digest_given_or_announced(endpoint: Endpoint, files: Files, path: str) -> None:
    assert get(endpoint, path, sha256=DIGEST.upper()).verified == "given"
    files.announced = DIGEST
    assert get(endpoint, path).verified == "hub"
    files.announced, files.etag = "", f'"{DIGEST}"'
    assert get(endpoint, path).verified == "hub"


def test_wrong_bytes_are_thrown_away(endpoint: Endpoint, files: Files, path: str) -> None:
    files.announced = "0" * 64
    with pytest.raises(ModelFailed, match=f"sha256 is {DIGEST}, expected 000"):
        get(endpoint, path)
    assert names(path) == []
    with pytest.raises(ModelFailed, match="not the one you named"):
        get(endpoint, path, sha256=DIGEST)  # told before a byte is fetched
    assert names(path) == []


def test_bytes_damaged_on_this_disk_between_two_runs_are_found_out(endpoint: Endpoint, files: Files, path: str) -> None:
    files.announced = DIGEST
    files.cuts = [300_000] + [0] * RETRY.attempts
    with pytest.raises(ModelFailed):
        get(endpoint, path)
    with open(f"{path}.part", "r+b") as file:
        file.write(b"flipped")
    with pytest.raises(ModelFailed, match="wrong digest"):
        get(endpoint, path)
    assert get(endpoint, path).sha256 == DIGEST


def test_the_way_leads_over_other_hosts_and_the_first_one_says_what_the_file_is(files: Files, path: str) -> None:
    with Endpoint(files) as store:
        files.announced = "f" * 64  # what a store says of itself is not believed
        told = {"Location": f"{store.url}/file.gguf", "X-Linked-ETag": f'"{DIGEST}"', "X-Linked-Size": str(len(DATA))}
        with Endpoint(lambda _seen: Reply(b"", 302, told)) as hub:
            fetched = get(hub, path)
    assert fetched == Fetched(f"{hub.url}/file.gguf", DIGEST, len(DATA), "hub")


def test_a_circle_of_redirects_ends(path: str) -> None:
    circle = Reply(b"", 302, {"Location": "/file.gguf"})
    with Endpoint(lambda _seen: circle) as endpoint, pytest.raises(ModelFailed, match="redirects"):
        get(endpoint, path)
    assert len(endpoint.seen) == 6


def test_a_file_that_is_not_there_is_missing_and_nothing_is_left(endpoint: Endpoint, path: str) -> None:
    with pytest.raises(ModelMissing, match="HTTP 404"):
        fetch(f"{endpoint.url}/nothing.gguf", path)
    assert names(path) == []


def test_a_server_that_fails_again_and_again_is_given_up(path: str) -> None:
    with Endpoint(lambda _seen: Reply(b"", 500)) as endpoint, pytest.raises(ModelFailed, match="HTTP 500"):
        get(endpoint, path)
    assert len(endpoint.seen) == RETRY.attempts


def test_a_full_disk_is_told_and_what_is_here_is_kept(
    endpoint: Endpoint, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, written = os.write, 0

    def write(fd: int, data: memoryview) -> int:
        nonlocal written
        if written + len(data) > 400_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = real(fd, data[: max(1, len(data) // 2)])  # and a short write now and then
        written += count
        return count

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(WriteFailed, match="No space left on device"):
            get(endpoint, path)
    assert os.path.getsize(f"{path}.part") == written
    assert get(endpoint, path).sha256 == DIGEST
    assert starts(endpoint)[-1] == f"bytes={written}-"


def test_too_little_room_is_told_before_anything_is_fetched(
    endpoint: Endpoint, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = os.statvfs("/")
    small = os.statvfs_result((*status[:4], 1, *status[5:]))

    def tell(fd: int) -> os.statvfs_result:
        return small

    monkeypatch.setattr(os, "fstatvfs", tell)
    with pytest.raises(WriteFailed, match="1,024,000 more bytes"):
        get(endpoint, path)
    assert names(path) == []


def test_two_downloads_of_one_file_do_not_mix(endpoint: Endpoint, path: str) -> None:
    os.makedirs(os.path.dirname(path))
    with open(f"{path}.part", "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(ModelFailed, match="another process"):
            get(endpoint, path)
    assert endpoint.seen == []


def test_a_child_forked_during_a_download_does_not_keep_its_lock(endpoint: Endpoint, path: str) -> None:
    children: list[int] = []
    done, finish = os.pipe()

    def fork_once(_done: int, _total: int) -> None:
        if children:
            return
        child = os.fork()
        if child == 0:
            os.close(finish)
            os.read(done, 1)  # lives until the parent is through
            os._exit(0)
        children.append(child)
        raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            fetch(f"{endpoint.url}/file.gguf", path, progress=fork_once)
        assert children
        fd = os.open(f"{path}.part", os.O_RDWR)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # free, although the child lives
        os.close(fd)
        assert get(endpoint, path).sha256 == DIGEST
    finally:
        os.close(finish)
        os.close(done)
        for child in children:
            os.waitpid(child, 0)
