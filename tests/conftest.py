"""How many examples the properties are tested on, and which.

The laws, in tests/laws, draw thousands; other properties, of one function each, hundreds. A plain run draws the same
examples every time, so that a red test speaks of the change and not of the dice. `VESTNIK_EXAMPLES=20000 script/test`
goes hunting: that many fresh examples for each.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; commands would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

HUNT = os.environ.get("VESTNIK_EXAMPLES")
LAWS = Path(__file__).parent / "laws"

for profile, examples in (("laws", 2_000), ("plain", 200)):
    settings.register_profile(
        profile,
        max_examples=int(HUNT or examples),
        derandomize=HUNT is None,
        print_blob=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Load the profile before the module is imported: `@given` takes the settings in force where it stands."""
    settings.load_profile("laws" if collector.path.is_relative_to(LAWS) else "plain")
