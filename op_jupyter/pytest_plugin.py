"""The pytest plugin: under `pytest --nbval`, an agent cell that has a cassette replays it.

It is loaded by every pytest in the environment, and so imports nothing but the standard library.
"""

from __future__ import annotations

import os
from typing import Any


def pytest_configure(config: Any) -> None:
    """Let the kernels that nbval starts inherit the variable; `OP_JUPYTER_REPLAY=0` asks the models even there."""
    options = vars(config.option)
    if options.get("nbval") or options.get("nbval_lax"):
        os.environ.setdefault("OP_JUPYTER_REPLAY", "1")
