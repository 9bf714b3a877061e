"""A gateway of its own for a test, and one for all tests that leave nothing behind in it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from gateway.webs import World, world


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared() -> AsyncIterator[World]:
    async with world() as here:
        yield here


@pytest_asyncio.fixture
async def fresh() -> AsyncIterator[World]:
    async with world() as here:
        yield here
