"""A shell with the extension loaded, and cassettes made from scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from op_jupyter import Runtime
from op_jupyter.providers.replay import Recorder
from op_jupyter.testing import scripted

MakeCassette = Callable[..., str]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    shell.run_line_magic("load_ext", "op_jupyter")
    yield shell
    InteractiveShell.clear_instance()


@pytest.fixture
def cassette(tmp_path: Path) -> MakeCassette:
    """Makes a cassette of `replies` to `question` in the test's folder, and gives its name."""

    def make(question: str, replies: Sequence[Any], *, tools: Sequence[Any] = (), **arguments: Any) -> str:
        recorder = Recorder()
        runtime = Runtime(model=recorder.wrap(scripted(replies)))
        runtime.exec(question, tools=tools, **arguments)
        recorder.save(tmp_path / "c.json")
        return "c.json"

    return make
