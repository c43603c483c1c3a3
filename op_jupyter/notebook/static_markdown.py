"""What a model wrote as Markdown, as static HTML that can do nothing. The view has the same dialect."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable
from typing import TYPE_CHECKING

from op_jupyter.notebook.static_words import shown, visible

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

_TAGS = {*"a blockquote br code em h1 h2 h3 h4 h5 h6 hr li ol p pre strong table tbody td th thead tr ul".split()}  # noqa: SIM905
_MOST_CELLS = 1_000
"""A table with more is slow to make, and 60 times as large as what was written: the text stays as it is."""
_ALIGN = ("left", "center", "right")
_CELL = {"align": {*_ALIGN}, "style": {f"text-align:{align};padding:2px 8px" for align in _ALIGN}}


def markdown(text: str) -> str:
    """Markdown as HTML: no raw HTML, no images, no odd links, and nothing in it acts unseen."""
    if text.count("|") > _MOST_CELLS:
        return f"<pre>{html.escape(shown(text))}</pre>"
    return _renderer()(shown(text))


@functools.cache
def _renderer() -> Callable[[str], str]:
    import nh3
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    parser.core.ruler.push("visible", _look)
    cleaner = nh3.Cleaner(
        tags=_TAGS,
        attributes={"*": set(), "a": {"href"}, "ol": {"start"}},
        tag_attribute_values={"td": _CELL, "th": _CELL},
        url_schemes={"http", "https", "mailto"},
        url_relative="deny",
    )
    return lambda text: cleaner.clean(parser.render(text))


def _look(state: StateCore) -> None:
    for token in state.tokens:
        _make_visible(token)


def _make_visible(token: Token) -> None:
    """An entity may stand for what must be seen, and notebooks turn cells to the right that do not say otherwise."""
    for child in token.children or []:
        _make_visible(child)
    token.content = visible(token.content)
    if token.type in ("td_open", "th_open"):
        align = str(token.attrGet("style") or "text-align:left").removeprefix("text-align:")
        token.attrs = {"align": align, "style": f"text-align:{align};padding:2px 8px"}
