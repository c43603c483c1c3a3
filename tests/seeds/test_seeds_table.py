"""The tables in `tests/README.md` tell the truth."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent.parent
NAMED = set(re.findall(r"`(test_\w+)`", (TESTS / "README.md").read_text()))


def defined_in(*patterns: str) -> set[str]:
    """The tests in the files that fit."""
    files = [file for pattern in patterns for file in TESTS.glob(pattern)]
    return {name for file in files for name in re.findall(r"def (test_\w+)\(", file.read_text())}


def test_every_test_that_the_tables_name_is_there() -> None:
    assert NAMED - defined_in("**/*.py") == set()


def test_every_test_of_the_source_documents_and_of_the_cases_is_named_in_a_table() -> None:
    assert defined_in("seeds/test_seeds_[!t]*.py", "**/test_cases_*.py") - NAMED == set()
