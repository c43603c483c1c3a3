"""A shell with the extension loaded, a kernel with it, and cassettes made from scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel
from traitlets.config import Config

from op_jupyter import Runtime
from op_jupyter.providers.replay import Recorder
from op_jupyter.testing import scripted
from tests.notebook.raw_kernel import SETUP, Kernel

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


@pytest.fixture(scope="session")
def started() -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    manager, client = start_new_kernel(kernel_name="python3")
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(started: tuple[KernelManager, BlockingKernelClient]) -> Kernel:
    kernel = Kernel(started[1])
    setup = kernel.start(SETUP)
    assert kernel.reply(setup)["status"] == "ok"
    kernel.forget(until=setup)
    return kernel
