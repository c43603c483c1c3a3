"""What a model reads of a value that a tool returned."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import io
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import PIL.Image
import polars as pl
import pytest
from IPython import display
from matplotlib.figure import Figure
from pydantic import BaseModel

from op_jupyter.messages import ImageContent, TextContent
from op_jupyter.tools.results import error_text, to_content, to_text

mpl.use("Agg")


def text(value: Any, **options: Any) -> str:
    (block,) = to_content(value, **options)
    assert isinstance(block, TextContent)
    return block.text


def picture(block: Any) -> PIL.Image.Image:
    assert isinstance(block, ImageContent)
    image = PIL.Image.open(io.BytesIO(block.data))
    assert f"image/{(image.format or '').lower()}" == block.mime_type
    return image


def png(size: tuple[int, int] = (2, 3), mode: str = "RGB", format: str = "PNG") -> bytes:
    file = io.BytesIO()
    PIL.Image.new(mode, size).save(file, format)
    return file.getvalue()


# ---------------------------------------------------------------- text and data


def test_text_stays_as_it_is() -> None:
    assert text('He said "hi" <b>{x}</b>\n\tμ 😀') == 'He said "hi" <b>{x}</b>\n\tμ 😀'


@pytest.mark.parametrize("nothing", [None, "", " \n", b""], ids=repr)
def test_nothing_is_said_to_be_nothing(nothing: Any) -> None:
    assert text(nothing) == "(no output)"


class Colour(enum.Enum):
    RED = "red"


class Shade(enum.StrEnum):
    DARK = "dark"


class Point(BaseModel):
    x: int
    day: datetime.date


@dataclasses.dataclass
class Span:
    start: int
    data: Any = None


DAY = datetime.date(2024, 2, 29)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"a": [1, 2.5, True, None, "ü"]}, '{"a": [1, 2.5, true, null, "ü"]}'),
        ([], "[]"),
        (0, "0"),
        (False, "false"),
        (float("nan"), "NaN"),
        ({"a": [float("nan"), -float("inf")], 2: np.float64("nan")}, '{"a": ["NaN", "-Infinity"], "2": "NaN"}'),
        ((1, "a"), '[1, "a"]'),
        ({1}, "[1]"),
        (DAY, "2024-02-29"),
        (Colour.RED, "red"),
        (Shade.DARK, "dark"),
        (Point(x=1, day=DAY), '{"x": 1, "day": "2024-02-29"}'),
        ([Span(1, DAY)], '[{"start": 1, "data": "2024-02-29"}]'),
        ({(1, 2): 3, DAY: 4, np.int64(5): 6}, '{"1,2": 3, "2024-02-29": 4, "5": 6}'),
        (b"text", "text"),
        (b"\xff\x00", "(2 bytes, which begin with b'\\xff\\x00')"),
        ({"a": b"\xff"}, '{"a": "(1 bytes, which begin with b\'\\\\xff\')"}'),
        (np.float64(1.5), "1.5"),
        (np.int64(3), "3"),
        (map(str, [1]), '["1"]'),
        (range(10**12), "range(0, 1000000000000)"),
        (ValueError("x"), "ValueError('x')"),
        (int, "<class 'int'>"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_data_become_json_and_the_rest_its_repr(value: Any, shown: str) -> None:
    assert text(value) == shown


def test_half_an_emoji_is_replaced_and_two_halves_are_joined() -> None:
    assert text("a\ud800b \ud83d\ude00 😀") == "a\ufffdb 😀 😀"
    assert json.loads(text({"a": "\ud800 \ud83d\ude00"})) == {"a": "\ufffd 😀"}


def test_a_key_is_in_nothing_a_model_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-12345678")

    for value in (
        "key sk-12345678",
        {"k": "sk-12345678"},
        pd.DataFrame({"k": ["sk-12345678"]}),
        [TextContent("sk-12345678")],
    ):
        assert "sk-12345678" not in text(value)
        assert "[redacted]" in text(value)


@pytest.mark.parametrize("key", ['pass"word\\12345', "two\nlines-of-it", 'it\'s-"quoted"', "schlüssel-😀-12"])
def test_a_key_is_found_also_where_json_or_a_repr_escapes_it(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", key)

    for value in ({"v": key}, [key], {key: 1}, [json.dumps({"v": key})], {1: repr([key, "'\""])}, (KeyError(key),)):
        assert text(value).count("[redacted]") == 1, text(value)
    assert text(error_text(KeyError(key))) in ("KeyError: '[redacted]'", 'KeyError: "[redacted]"')


def test_a_cut_does_not_leave_half_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-12345678")

    assert "sk-" not in text("x" * 45 + "sk-12345678" + "x" * 1000, max_result_chars=100)


# ---------------------------------------------------------------- what is large or odd


def test_a_long_text_keeps_its_head_and_its_tail_and_says_so() -> None:
    shown = text("a" * 500 + "b" * 500, max_result_chars=100)

    assert shown == "a" * 50 + "\n[… 900 of 1,000 characters left out …]\n" + "b" * 50
    assert text("ab" * 50, max_result_chars=100) == "ab" * 50
    assert text("abc", max_result_chars=1).startswith("a\n[… 2 of 3")


def test_a_result_never_takes_more_than_a_third_of_the_context() -> None:
    assert 153_600 <= len(text("x" * 10_000_000)) < 153_700
    assert 153_600 <= len(text("x" * 10_000_000, max_result_chars=1_000_000)) < 153_700
    assert 1_200 <= len(text("x" * 10_000_000, context_tokens=1000)) < 1_300


HUGE: dict[str, Callable[[], Any]] = {
    "numbers": lambda: list(range(2_000_000)),
    "records": lambda: [{"a": number, "b": "text"} for number in range(200_000)],
    "array": lambda: np.zeros((3000, 3000)),
    "table": lambda: pd.DataFrame(np.zeros((100_000, 100))),
    "cell": lambda: pd.DataFrame({"a": ["x" * 10_000_000]}),
    "polars cell": lambda: pl.DataFrame({"a": ["x" * 10_000_000], "b": [1]}),
    "endless": itertools.count,
    "endless inside": lambda: {"a": itertools.count()},
}


@pytest.mark.parametrize("kind", HUGE)
def test_a_huge_value_is_bounded_in_size_and_time(kind: str) -> None:
    value = HUGE[kind]()
    started = time.perf_counter()

    assert len(text(value)) < 153_700
    assert time.perf_counter() - started < 5


def test_several_texts_share_the_space_of_one() -> None:
    shown = str(to_content([TextContent("x" * 1000), TextContent("y" * 1000)], max_result_chars=200))

    assert (shown.count("xxx"), shown.count("yyy")) == (2 * (50 // 3), 2 * (50 // 3))


def test_a_long_cell_is_cut() -> None:
    for library in (pd, pl):
        assert len(text(library.DataFrame({"a": ["x" * 1000, "y"], "b": [1, 2]}))) < 1000


def test_of_an_endless_iterator_the_first_items_are_shown() -> None:
    assert text(itertools.count()).startswith("[0, 1, 2, ")
    assert text({"a": itertools.count()}).endswith('999, "(the rest, after 1000 items, unread)"]}')


def test_no_value_makes_the_result_fail() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise ZeroDivisionError("no")

    class BrokenPicture:
        def _repr_png_(self) -> bytes:
            raise OSError("no disk")

    circle: list[Any] = [1]
    circle.append(circle)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert text(Broken()) == "<Broken, whose repr raises ZeroDivisionError: no>"
    assert text({"a": Broken()}) == '{"a": "<Broken, whose repr raises ZeroDivisionError: no>"}'
    assert text(BrokenPicture()) == "(a BrokenPicture that cannot be shown: OSError: no disk)"
    assert text(circle) == "[1, [...]]"
    assert text(deep).startswith("(a list that cannot be shown: RecursionError")


def test_an_open_file_or_another_iterator_of_somebody_elses_is_not_read() -> None:
    class Rows:
        def __iter__(self) -> Iterator[int]:
            return self

        def __next__(self) -> int:
            raise AssertionError("read")

    file = io.StringIO("text")
    assert text(file).startswith("<_io.StringIO")
    assert file.read() == "text"
    assert "Rows object" in text(Rows())


# ---------------------------------------------------------------- tables and arrays


def test_a_table_is_shown_with_its_shape() -> None:
    assert (
        text(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})) == "DataFrame, 2 rows, 2 columns\n   a  b\n0  1  x\n1  2  y"
    )
    assert text(pd.Series([1, 2], name="s")) == "Series 's', 2 rows, int64\n   s\n0  1\n1  2"
    assert text(pl.DataFrame({"a": [1], "b": ["x"]})).startswith("shape: (1, 2)\n| a   | b   |")
    assert text(pl.Series("s", [1])).startswith("shape: (1,)")
    assert text(np.array([[1, 2]])) == "array, shape (1, 2), int64\n[[1, 2]]"


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_of_a_large_table_the_first_and_last_rows_and_columns_are_shown(library: Any) -> None:
    shown = text(library.DataFrame({f"c{column}": [row + 1000 for row in range(500)] for column in range(50)}))

    assert "500" in shown.splitlines()[0]
    assert "50" in shown.splitlines()[0]
    for part in ("c0", "c49", "1000", "1499"):
        assert part in shown
    assert "c25" not in shown
    assert "1250" not in shown
    assert len(shown) < 10_000


def test_a_table_inside_of_data_is_shown_too() -> None:
    shown = json.loads(text({"table": pd.DataFrame({"a": [1]}), "n": np.int64(1), "array": np.array([1])}))

    assert shown == {
        "table": "DataFrame, 1 rows, 1 columns\n   a\n0  1",
        "n": 1,
        "array": "array, shape (1,), int64\n[1]",
    }
    assert "DataFrame" in text(Span(1, pd.DataFrame({"a": [1]})))


# ---------------------------------------------------------------- images


def test_a_figure_and_its_axes_are_one_image() -> None:
    figure = Figure()
    axes = figure.subplots(1, 2)

    for value in (figure, axes, axes[0], (figure, axes), [figure, axes[0], axes[1]]):
        (block,) = to_content(value)
        assert picture(block).width > 100


def test_an_image_of_pillow_is_an_image() -> None:
    for mode in ("RGB", "RGBA", "L", "P", "1", "CMYK", "F", "I;16"):
        (block,) = to_content(PIL.Image.new(mode, (2, 3)))
        assert picture(block).size == (2, 3)


def test_a_large_image_is_made_smaller() -> None:
    for value in (PIL.Image.new("RGB", (6000, 3000)), Figure(figsize=(100, 50))):
        (block,) = to_content(value)
        assert 1400 < max(picture(block).size) < 1600


def test_images_among_other_things_stand_where_they_stood() -> None:
    image = ImageContent(png(), "image/png")

    assert to_content(["before", image, {"a": 1}]) == [TextContent("before"), image, TextContent('{"a": 1}')]
    assert to_content([TextContent("a"), TextContent("b")]) == [TextContent("a"), TextContent("b")]
    assert to_content(image) == [image]


def test_of_many_images_the_first_20_are_shown_and_the_rest_is_told() -> None:
    images = [ImageContent(png((1, height)), "image/png") for height in range(1, 26)]

    *shown, rest = to_content([*images, "and a word"])
    assert shown == images[:20]
    assert (
        isinstance(rest, TextContent) and rest.text.endswith('"and a word"]') and rest.text.count("image/png of") == 5
    )
    told, *shown = to_content({f"n{number}": image for number, image in enumerate(images)})
    assert shown == images[:20]
    assert isinstance(told, TextContent) and json.loads(told.text)["n19"] == "(image 20, below)"
    assert json.loads(told.text)["n24"].startswith("(image/png of")


def test_an_image_that_is_too_large_is_told_and_not_shown() -> None:
    class Plot:
        def _repr_png_(self) -> bytes:
            return bytes(12_000_000)

    for value in (ImageContent(bytes(12_000_000), "image/png"), Plot()):
        assert text(value) == "(image/png of 12,000,000 bytes, too large to be shown)"
    shown = to_content([ImageContent(bytes(3_000_000), "image/png")] * 9 + [Plot()])
    assert [block.kind for block in shown] == ["image", "text"]
    large = [ImageContent(bytes([number]) * 3_000_000, "image/png") for number in range(9)]
    assert [block.kind for block in to_content(large)] == ["image"] * 3 + ["text"] * 6


def test_a_picture_that_would_be_too_large_as_a_png_is_a_jpeg() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (1500, 1500, 4), dtype=np.uint8)
    (block,) = to_content(PIL.Image.fromarray(noise))
    assert picture(block).format == "JPEG"


def test_what_ipython_displays_is_shown() -> None:
    for format in ("png", "jpeg"):
        (block,) = to_content(display.Image(png(format=format)))
        assert picture(block).size == (2, 3)
    assert text(display.Markdown("**a**")) == "**a**"
    assert text(display.HTML("<b>a</b>")) == "<b>a</b>"
    assert text(display.JSON({"a": 1})) == '{"a": 1}'


def test_no_library_is_imported_to_find_out_what_a_value_is() -> None:
    code = """
import sys
from op_jupyter.tools.results import to_content
to_content({"a": object(), "b": [1]})
print([name for name in ("numpy", "pandas", "polars", "matplotlib", "PIL", "IPython") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---------------------------------------------------------------- errors, and values in a text


def test_an_error_is_its_type_and_its_message() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    assert error_text(ValueError("not 5")) == "ValueError: not 5"
    assert error_text(KeyError("x")) == "KeyError: 'x'"
    assert error_text(ValueError()) == "ValueError"
    assert error_text(ValueError(" \n")) == "ValueError"
    assert error_text(Silent()) == "Silent"


def test_a_value_in_a_text_is_whole() -> None:
    assert to_text("x" * 1_000_000) == "x" * 1_000_000
    assert (to_text(None), to_text(""), to_text([1]), to_text(DAY)) == ("None", "", "[1]", "2024-02-29")
    assert to_text(pd.DataFrame({"a": [1]})).startswith("DataFrame, 1 rows")


def test_what_could_be_drawn_and_is_not_is_text() -> None:
    class Plot:
        def _repr_png_(self) -> None: ...

        def __repr__(self) -> str:
            return "an empty plot"

    assert text(Plot()) == "an empty plot"


def test_the_images_in_a_dict_follow_it() -> None:
    told, image = to_content({"n": 1, "plot": Figure(), "same": None})
    assert isinstance(told, TextContent) and json.loads(told.text) == {"n": 1, "plot": "(image 1, below)", "same": None}
    assert isinstance(image, ImageContent)


def test_where_an_object_is_in_memory_is_not_told() -> None:
    class Fitted:
        pass

    assert "Fitted object>" in text(Fitted()) and "0x" not in text([Fitted()])
