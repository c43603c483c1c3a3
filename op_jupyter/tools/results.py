"""What a tool returned → what the model reads: text, tables, JSON, images.

Nothing is imported to find out what a value is, and no value, however large or odd, makes the result fail.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import traceback
from collections.abc import Iterator
from typing import Any, TypeGuard, cast

from op_jupyter.messages import ImageContent, InputBlock, TextContent
from op_jupyter.redact import redact, whole_characters
from op_jupyter.tools.coerce import is_object
from op_jupyter.tools.images import MOST_IMAGE_BYTES, displayed, drawn, image_of, is_of, may_be_image

MOST_ITEMS = 1000
"""So many items are taken from a generator."""

_NO_OUTPUT = "(no output)"
_CHARS_PER_TOKEN = 4
_SHARE_OF_CONTEXT = 0.3
_MOST_BLOCKS = 20
_MOST_BYTES = 10_000_000
"""So many bytes of images are shown of one result."""
_MOST_ROWS = 30
_MOST_COLUMNS = 20
_MOST_CELL_CHARS = 80
_MOST_NUMBERS = 200


def to_content(value: Any, *, max_result_chars: int | None = None, context_tokens: int = 128_000) -> list[InputBlock]:
    """`value` as blocks for the model, without keys.

    Text stays as it is, data become JSON, a table or an array is shown in part with its shape, a figure or an image
    becomes an image, nothing becomes `(no output)`. A list that holds images gives the blocks of each of its items, and
    after a dict come the images in it: the first 20, and none that is too large.

    Args:
        value: whatever a tool returned.
        max_result_chars: the length at which text is cut, its head and tail kept.
        context_tokens: the model's context, of which a result never takes more than 0.3.
    """
    most = int(_SHARE_OF_CONTEXT * _CHARS_PER_TOKEN * context_tokens)
    limit = most if max_result_chars is None else min(max_result_chars, most)
    try:
        blocks = list(_bounded(_blocks(value)))
    except Exception as error:
        blocks = [TextContent(f"(a {type(value).__name__} that cannot be shown: {error_text(error)})")]
    limit = max(limit // max(len(blocks), 1), 1)
    return [TextContent(_clean(block.text, limit)) if isinstance(block, TextContent) else block for block in blocks]


def error_traceback(error: BaseException) -> str:
    """Where in the function it failed: for the person, never for the model. Our own frames are left out.

    What is longer than 100,000 characters is cut.
    """
    frame = error.__traceback__
    while frame and frame.tb_frame.f_globals.get("__name__", "").startswith("op_jupyter."):
        frame = frame.tb_next
    try:
        lines = traceback.format_exception(type(error), error, frame)
    except Exception:  # of an exception that Python itself cannot show
        lines = [error_text(error)]
    return clip("".join(lines), 100_000)


def to_text(value: Any) -> str:
    """`value` as it would stand in a text: in full, except for tables and arrays."""
    return repr(value) if value is None else _text(value)


def error_text(error: BaseException) -> str:
    """`TypeName: message`, or the type alone when there is no message; with keys, which `to_content` takes out."""
    name = type(error).__name__
    try:
        message = str(error).strip()
    except Exception:
        message = ""
    return f"{name}: {message}" if message else name


def clip(text: str, limit: int) -> str:
    """`text` cut to `limit` characters: its head and tail, and between them how much was left out."""
    if len(text) <= limit:
        return text
    tail = limit // 2
    note = f"\n[… {len(text) - limit:,} of {len(text):,} characters left out …]\n"
    return text[: limit - tail] + note + text[len(text) - tail :]


def listed(value: Any) -> Any:
    """The items of a generator, or of another one-time iterator of Python's own, as a list; anything else as it is."""
    return marked(list(itertools.islice(value, MOST_ITEMS + 1))) if _is_iterator(value) else value


def marked(items: list[Any]) -> list[Any]:
    """`items`, with a note in place of what is beyond `MOST_ITEMS`."""
    return items if len(items) <= MOST_ITEMS else [*items[:MOST_ITEMS], f"(the rest, after {MOST_ITEMS} items, unread)"]


def _is_iterator(value: Any) -> TypeGuard[Iterator[Any]]:
    return isinstance(value, Iterator) and type(cast("object", value)).__module__ in ("builtins", "itertools")


def _clean(text: str, limit: int) -> str:
    text = whole_characters(text)
    # Keys are taken out before the cut, since half a key would not be recognized.
    return clip(redact(text), limit) if text.strip() else _NO_OUTPUT


def _blocks(value: Any) -> list[InputBlock]:
    if isinstance(value, TextContent):
        return [value]
    if isinstance(value, list | tuple):
        first, rest = cast("list[Any]", value[:_MOST_BLOCKS]), cast("list[Any]", value[_MOST_BLOCKS:])
        # A figure and its axes are one picture.
        items = {id(item): item for item in map(drawn, first)}.values()
        if any(isinstance(item, TextContent) or may_be_image(item) for item in items):
            blocks = [block for item in items for block in _blocks(item)]
            return [*blocks, TextContent(f"(the rest, as text) {_text(rest)}")] if rest else blocks
    if is_object(value):
        drawings = ((name, image) for name, item in value.items() if (image := image_of(item)))
        images = dict(itertools.islice(drawings, _MOST_BLOCKS))
        if images:
            noted = {name: f"(image {n}, below)" for n, name in enumerate(images, start=1)}
            return [TextContent(_text(value | noted)), *images.values()]
    image = image_of(value)
    return [TextContent(_text(value)) if image is None else image]


def _bounded(blocks: list[InputBlock]) -> Iterator[InputBlock]:
    left = _MOST_BYTES
    for block in blocks:
        if isinstance(block, ImageContent):
            if len(block.data) > min(left, MOST_IMAGE_BYTES):
                yield TextContent(_of_image(block, ", too large to be shown"))
                continue
            left -= len(block.data)
        yield block


def _of_image(image: ImageContent, why: str = "") -> str:
    return f"({image.mime_type} of {len(image.data):,} bytes{why})"


# ---------------------------------------------------------------- text


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return str.__str__(value)
    markdown = displayed(value, "_repr_markdown_")
    if isinstance(markdown, str):
        return markdown
    if is_of(value, "IPython.core.display", "DisplayObject") and value.data is not None:
        return _text(value.data)
    is_json = isinstance(value, dict | list | tuple | bool | int | float)
    plain: Any = cast("object", value) if is_json else _plain(value)
    return plain if isinstance(plain, str) else _json(plain)


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError):
        # Keys that are not text, or a list that holds itself.
        plain = _jsonable(value)
        if isinstance(plain, str):
            return plain
        text = json.dumps(plain, ensure_ascii=False)
    if "NaN" in text or "Infinity" in text:
        # JSON has no such numbers.
        plain = json.loads(text, parse_constant=str)
        return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return text


def _plain(value: Any) -> Any:
    """`value` in the types of JSON, or shown as text."""
    known = _known(value)
    return _jsonable(value) if known is None else known


def _jsonable(value: Any) -> Any:
    from pydantic_core import to_jsonable_python

    def other(value: Any) -> Any:
        known = _known(value)
        return _repr(value) if known is None else known

    try:
        return to_jsonable_python(value, fallback=other)
    except Exception:
        return _repr(value)


def _repr(value: object) -> str:
    """The repr of `value`, without addresses: they say nothing, and a replay would find others."""
    try:
        return re.sub(r" at 0x[0-9a-fA-F]+(?=>)", "", repr(value))
    except Exception as error:
        return f"<{type(value).__name__}, whose repr raises {error_text(error)}>"


def _known(value: Any) -> Any:
    """A value that pydantic does not know, or would take too much of: `None` when it is no such value."""
    if isinstance(value, Iterator):
        items = listed(cast("object", value))
        return _repr(items) if items is value else items
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(cast("bytes", value))
        try:
            return data.decode()
        except UnicodeDecodeError:
            return f"({len(data):,} bytes, which begin with {data[:40]!r})"
    if isinstance(value, ImageContent):
        return _of_image(value)
    if is_of(value, "numpy", "generic"):
        return value.item()
    if is_of(value, "numpy", "ndarray"):
        return _array(value)
    if is_of(value, "pandas", "DataFrame", "Series"):
        return _pandas(value)
    if is_of(value, "polars", "DataFrame", "Series"):
        return _polars(value)
    return None


def _array(array: Any) -> str:
    numbers = sys.modules["numpy"].array2string(array, threshold=_MOST_NUMBERS, edgeitems=5, separator=", ")
    return f"array, shape {array.shape}, {array.dtype}\n{numbers}"


def _pandas(data: Any) -> str:
    if data.ndim == 1:
        head = f"Series{f' {data.name!r}' if data.name else ''}, {len(data):,} rows, {data.dtype}"
        data = data.to_frame()
    else:
        head = f"DataFrame, {len(data):,} rows, {len(data.columns):,} columns"
    table = data.to_string(max_rows=_MOST_ROWS, max_cols=_MOST_COLUMNS, max_colwidth=_MOST_CELL_CHARS)
    return f"{head}\n{table}"


def _polars(data: Any) -> str:
    with sys.modules["polars"].Config(
        tbl_rows=_MOST_ROWS,
        tbl_cols=_MOST_COLUMNS,
        tbl_width_chars=-1,
        fmt_str_lengths=_MOST_CELL_CHARS,
        tbl_formatting="ASCII_MARKDOWN",
    ):
        return str(data)
