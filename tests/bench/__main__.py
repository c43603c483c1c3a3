"""`make bench`: what a person notices, measured as a ratio to what it cannot cost less than."""

from __future__ import annotations

import os

from tests.bench.rounds import cost_of_rounds
from tests.providers.adapters import ADAPTERS


def main() -> None:
    """Measure, and print the table."""
    os.environ["AWS_REGION"] = "us-east-1"  # for the one that needs a place
    for name, adapter in ADAPTERS.items():
        for earlier in (0, 160):
            cost = cost_of_rounds(adapter, earlier)
            print(f"{name:18} after {earlier:3} messages: {cost.ours:6.2f} ms a round, {cost.ratio:5.2f} × the floor")


if __name__ == "__main__":
    main()
