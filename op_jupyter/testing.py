"""For tests of what people build: the scripted model, and the pytest plugin that turns agent cells to replay.

Importing it loads no provider's SDK; pytest itself is never imported.
"""

from __future__ import annotations

import os
from typing import Any

from op_jupyter.providers.scripted import call, scripted

__all__ = ["call", "scripted"]


def pytest_configure(config: Any) -> None:
    """Under `pytest --nbval`, let an agent cell that has a cassette replay it: the kernels inherit the variable.

    `OP_JUPYTER_REPLAY=0` in the environment asks the models instead.
    """
    options = vars(config.option)
    if options.get("nbval") or options.get("nbval_lax"):
        os.environ.setdefault("OP_JUPYTER_REPLAY", "1")
