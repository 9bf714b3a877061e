"""How the laws are tested.

A plain run draws the same examples every time, so that a red test speaks of the change and not of the dice.
`VESTNIK_EXAMPLES=20000 script/test tests/laws` goes hunting: that many fresh examples for each law.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

HUNT = os.environ.get("VESTNIK_EXAMPLES")

settings.register_profile(
    "vestnik",
    max_examples=int(HUNT or 2_000),
    derandomize=HUNT is None,
    print_blob=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("vestnik")
