"""Python objects that are images, or can be drawn as one → blocks for a model.

Nothing is imported to find out what a value is.
"""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path
from typing import Any, cast

from op_jupyter.messages import ImageContent

MOST_IMAGE_BYTES = 3_750_000
"""In base64, these are the 5 MB that every provider takes."""

_MOST_PIXELS = 1500
_MOST_AXES = 400
_SIGNATURES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}
"""The first bytes of the kinds that every provider takes."""


def as_image(value: Any) -> ImageContent | None:
    """The image that a person means by a path, by the bytes of a file, or by a figure or image object.

    Raises:
        ValueError: when the file cannot be read, or is no PNG, JPEG, GIF or WebP.
    """
    if isinstance(value, Path):
        try:
            data = value.expanduser().read_bytes()
        except OSError as error:
            raise ValueError(f"The image {str(value)!r} cannot be read: {error.strerror}") from None
        return ImageContent(data, _mime_type(data, repr(str(value))))
    if isinstance(value, bytes | bytearray):
        return ImageContent(bytes(value), _mime_type(value, "What is given as bytes"))
    return image_of(value)


def _mime_type(data: bytes | bytearray, what: str) -> str:
    for signature, mime_type in _SIGNATURES.items():
        if data.startswith(signature):
            return mime_type
    raise ValueError(f"{what} is no PNG, JPEG, GIF or WebP image")


def is_of(value: Any, module: str, *names: str) -> bool:
    """Whether `value` is of a class of `module`, which nobody has to import for that."""
    classes = (getattr(sys.modules.get(module), name, None) for name in names)
    return any(isinstance(cls, type) and isinstance(value, cls) for cls in classes)


def drawn(value: Any) -> Any:
    """The figure that axes, or an array of axes, are part of; anything else as it is."""
    if is_of(value, "numpy", "ndarray") and value.dtype == object and 0 < value.size <= _MOST_AXES:
        first = value.flat[0]
        return drawn(first) if is_of(first, "matplotlib.axes", "Axes") else value
    return value.figure.figure if is_of(value, "matplotlib.axes", "Axes") else value


def may_be_image(value: Any) -> bool:
    """Whether `image_of` may draw `value`: told without drawing it."""
    value = drawn(value)
    return (
        isinstance(value, ImageContent)
        or is_of(value, "matplotlib.figure", "Figure")
        or displays(value, "_repr_png_")
        or displays(value, "_repr_jpeg_")
    )


def image_of(value: Any) -> ImageContent | None:
    """`value` drawn, as a PNG or as what it would display in a notebook; `None` when it is nothing to look at."""
    if isinstance(value, ImageContent):
        return value
    value = drawn(value)
    if is_of(value, "matplotlib.figure", "Figure"):
        file = io.BytesIO()
        dpi = min(value.dpi, _MOST_PIXELS / max(value.get_size_inches()))
        value.savefig(file, format="png", dpi=dpi, bbox_inches="tight")
        return ImageContent(file.getvalue(), "image/png")
    if is_of(value, "PIL.Image", "Image"):
        file = io.BytesIO()
        picture = value.copy() if value.mode in ("1", "L", "LA", "P", "RGB", "RGBA") else value.convert("RGB")
        picture.thumbnail((_MOST_PIXELS, _MOST_PIXELS))
        picture.save(file, "PNG")
        if file.tell() <= MOST_IMAGE_BYTES:
            return ImageContent(file.getvalue(), "image/png")
        file = io.BytesIO()
        picture.convert("RGB").save(file, "JPEG")
        return ImageContent(file.getvalue(), "image/jpeg")
    for mime_type in ("image/png", "image/jpeg"):
        data = displayed(value, f"_repr_{mime_type.removeprefix('image/')}_")
        if data:
            return ImageContent(base64.b64decode(data) if isinstance(data, str) else data, mime_type)
    return None


def displays(value: object, method: str) -> bool:
    """Whether `value` has this method of IPython's; its class is asked, since some objects claim to have any."""
    return hasattr(type(value), method)


def displayed(value: Any, method: str) -> Any:
    """What IPython would display of `value` by this method, if it has it."""
    if not displays(value, method):
        return None
    data = getattr(value, method)()
    return cast("tuple[Any, Any]", data)[0] if isinstance(data, tuple) else data
