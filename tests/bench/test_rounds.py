"""A rough look at what a round costs, with room for a busy machine; the figures are those of `make bench`."""

from __future__ import annotations

import pytest

from tests.bench.rounds import cost_of_rounds
from tests.providers.adapters import ADAPTERS


@pytest.mark.parametrize("provider", ADAPTERS)
@pytest.mark.parametrize("earlier", [0, 160])
def test_a_round_costs_a_small_multiple_of_the_same_bytes_over_plain_http(
    provider: str, earlier: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    cost = cost_of_rounds(ADAPTERS[provider], earlier, turns=3)
    assert cost.ratio < 5, cost
