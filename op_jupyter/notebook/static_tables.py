"""Tables in static HTML: made here, of texts that are escaped, and never of anybody's HTML."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import Any

from op_jupyter.notebook.static_words import LONGEST, as_json, counted, visible

_MOST_ROWS = 50
_MOST_COLUMNS = 30
_MOST_CELL = 500


def table_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table with its column names; numbers stand to the right."""
    first = rows[0] if rows else names
    head = "".join(_cell("th", name, like) for name, like in zip(names[:_MOST_COLUMNS], first, strict=False))
    body = "".join(
        f"<tr>{''.join(_cell('td', cell) for cell in row[:_MOST_COLUMNS])}</tr>" for row in rows[:_MOST_ROWS]
    )
    left_out = ", ".join(
        counted(number, f"more {noun}")
        for number, noun in ((len(rows) - _MOST_ROWS, "row"), (len(names) - _MOST_COLUMNS, "column"))
        if number > 0
    )
    note = f"<p><em>… {left_out}</em></p>" if left_out else ""
    thead = f"<thead><tr>{head}</tr></thead>" if names else ""
    return (
        '<table style="border-collapse:collapse;display:block;overflow-x:auto;margin:2px 0 6px">'
        f"{thead}<tbody>{body}</tbody></table>{note}"
    )


def table_in_html(text: str) -> str:
    """The one table that is in somebody's HTML, made anew from its texts; empty where there is no such table."""
    if "<table" not in text or len(text) > 10 * LONGEST:
        return ""
    reader = _Reader()
    try:
        reader.feed(text)
        reader.close()
    except AssertionError:  # the parser's answer to some broken declarations
        return ""
    if reader.tables != 1 or not reader.rows:
        return ""
    width = max(map(len, reader.rows))
    # Columns that are spread over others, as those of an index with several levels, would stand in the wrong place.
    if not width or reader.is_spread or any(len(row) != width for row in reader.rows):
        return ""
    names = reader.rows[0] if reader.has_names else []
    return table_of(names, [[_number(cell) for cell in row] for row in reader.rows[len(names) > 0 :]])


class _Reader(HTMLParser):
    """The texts of the cells of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tables = 0
        self.has_names = False
        self.is_spread = False
        self._cell: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("td", "th"):
            self._end_cell()
            self._cell = []
            self.is_spread |= any(name in ("colspan", "rowspan") and value != "1" for name, value in attrs)
            if not self.rows:
                self.rows.append([])
        elif tag == "tr":
            self._end_cell()
            self.rows.append([])
        elif tag == "table":
            self.tables += 1
        elif tag == "thead":
            self.has_names = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "tr", "table"):
            self._end_cell()

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def _end_cell(self) -> None:
        if self._cell is not None:
            self.rows[-1].append(" ".join("".join(self._cell).split()))
            self._cell = None


def _number(text: str) -> Any:
    """A cell whose text is a number, to stand to the right as it is written."""
    return _Digits(text) if text and set(text) <= set("0123456789.,-+e%") else text


class _Digits(str):
    """A number as somebody wrote it."""


def _cell(tag: str, value: Any, like: Any = None) -> str:
    """A cell, to that side on which `like` stands, or the value itself."""
    decides = value if like is None else like
    is_number = isinstance(decides, int | float | _Digits) and not isinstance(decides, bool)
    align = "right" if is_number else "left"
    return f'<{tag} align="{align}" style="text-align:{align};padding:2px 8px">{"".join(_shown(value))}</{tag}>'


def _shown(value: Any) -> Iterator[str]:
    text = "" if value is None else value if isinstance(value, str) else as_json(value)
    yield html.escape(visible(text[:_MOST_CELL]))
    if len(text) > _MOST_CELL:
        yield f"… {counted(len(text) - _MOST_CELL, 'more character')}"
