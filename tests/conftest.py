"""How many examples the properties are tested on, and which.

The laws, in tests/laws, draw a thousand; other properties, of one function each, hundreds. A plain run draws the same
examples every time, so that a red test speaks of the change and not of the dice. `VESTNIK_EXAMPLES=20000 script/test`
goes hunting: that many fresh examples for each.

With several workers, all tests of Spark go to one of them, and first: they share a session, and take long; those that
start another are apart. So do the studies of the lab: they share what was measured.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; commands would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.pop("PYTHONUNBUFFERED", None)  # commands would inherit it, and users' commands buffer what they print

HUNT = os.environ.get("VESTNIK_EXAMPLES")
LAWS = Path(__file__).parent / "laws"
STUDIES = "tests/lab/test_studies.py"
SPARK = ("tests/spark/", "tests/test_docs.py::test_python_examples[docs/guide/pipeline.md]")
APART = ("tests/spark/test_cluster.py", "tests/spark/test_session.py::test_without_a_java")
"""Tests with a Spark of their own."""

for profile, examples in (("laws", 1_000), ("plain", 200)):
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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out tests one by one, those of Spark and the studies as one."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(STUDIES):
                return STUDIES
            if nodeid.startswith(APART):
                return "spark apart"
            return "spark" if nodeid.startswith(SPARK) else nodeid

    return Scheduling(config, log)
