"""For tests of what people build: a model that says what it is told to say.

Names only; the model itself is in `providers.scripted`.
"""

from __future__ import annotations

from op_jupyter.providers.scripted import call, scripted

__all__ = ["call", "scripted"]
