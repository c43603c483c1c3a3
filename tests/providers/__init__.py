import pytest

SHARED = ("adapter", "conformance", "connections", "recordings")
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in SHARED))
