"""One browser, one Jupyter server and one scripted model for all tests of this folder.

Not for those of other folders: an event loop runs in the main thread for as long as there is a browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.lab import PATIENCE, Lab, browser, end_kernels, jupyter
from tests.browser.still import StillPage, build, states
from tests.providers.wire_server import WireServer


def asks(server: WireServer) -> dict[str, str]:
    """The environment in which a model is what `server` says."""
    return {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "no-real-key", "OP_JUPYTER_MODEL": "openai:x"}


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


@pytest.fixture(scope="package")
def server() -> Iterator[WireServer]:
    with WireServer().running() as server:
        yield server


@pytest.fixture
def wire(server: WireServer) -> WireServer:
    """The server that the models of all notebooks ask, with nothing left of what was asked before."""
    server.reset()
    return server


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory, server: WireServer) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    with jupyter(folder, **asks(server)) as url:
        yield Lab(folder, url)


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page in a browser profile of its own. All kernels end with it: some are in a function that never returns."""
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()
    end_kernels()


@pytest.fixture
def gate(request: pytest.FixtureRequest) -> str:
    """A name for the file that the run of this test waits for."""
    return re.sub(r"\W", "-", request.node.name)[-40:]


@pytest.fixture(scope="package")
def records() -> dict[str, dict[str, Any]]:
    """A run in each state that one can be in, by the name of the state."""
    return states()


@pytest.fixture(scope="package")
def _still(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StillPage]:
    still = StillPage(chromium, build(tmp_path_factory.mktemp("view")))
    yield still
    still.page.context.close()


@pytest.fixture
def still(_still: StillPage) -> StillPage:
    """A page that shows records, as large and as coloured as pages mostly are."""
    _still.page.set_viewport_size({"width": 1000, "height": 900})
    _still.page.emulate_media(color_scheme="light", forced_colors="none", reduced_motion="no-preference")
    return _still
