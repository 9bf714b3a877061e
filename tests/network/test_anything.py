"""Applications that do anything, at brokers that end and are back. `VESTNIK_RUNS=200 script/test -k anything` hunts."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest

from network.anything import BrokersApart, BrokersHere, World, halting

RUNS = os.environ.get("VESTNIK_RUNS")
HERE, APART = range(int(RUNS or 6)), range(int(RUNS or 2))


async def anything(world: World, chance: Random, steps: int) -> None:
    acts = {
        world.publish: 12,
        world.subscribe: 4,
        world.subscribe_to_who_ends: 1,
        world.change: 2,
        world.unsubscribe: 2,
        world.cut: 4,
        world.restart: 1,
        world.restart_two: 1,
        world.nothing: 4,
    }
    async with world.running():
        for act in chance.choices(list(acts), list(acts.values()), k=steps):
            await act()
        await world.settled()
        for watch in world.watches:
            watch.check()


@pytest.mark.parametrize("seed", HERE)
async def test_brokers_that_end_in_order(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    with halting(Random(seed)) if seed % 2 else nullcontext():
        await anything(World(BrokersHere(tmp_path, chance), chance), chance, 50)


@pytest.mark.parametrize("seed", APART)
async def test_brokers_that_are_killed(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    await anything(World(BrokersApart(tmp_path, chance), chance), chance, 40)
