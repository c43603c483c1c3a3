import pytest

pytest.register_assert_rewrite(
    *(f"{__name__}.{name}" for name in ("adapter", "conformance", "connections", "recordings"))
)
