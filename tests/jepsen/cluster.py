"""Five brokers, each a process with a port and a folder of its own, in a tree that can be changed."""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import vestnik
from jepsen.links import LinkProxy
from jepsen.plan import BROKERS, Plan
from jepsen.processes import VESTNIK, start
from jepsen.processes import vestnik as run_vestnik
from vestnik.errors import VestnikError

PATIENCE = 30.0
"""Seconds in which a broker must listen."""
PORTS = range(16_000, 32_000)
"""Below those that Linux gives to connections and to port 0: the port of a broker that is down stays free."""


class BrokerTree:
    """Brokers go by their places, from 0; the parent of a broker is the one that it joins."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._original = plan.parents()
        self.parents = list(self._original)
        self.ports = free_ports(BROKERS)
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._proxies: dict[tuple[int, int], LinkProxy] = {}
        self.doors = [LinkProxy(port) for port in self.ports]
        """Through these clients connect to each broker."""
        self._options: list[str] = []

    @property
    def addresses(self) -> list[str]:
        return [f"127.0.0.1:{port}" for port in self.ports]

    @property
    def traces(self) -> list[Path]:
        return [self._folder / f"b{place}.jsonl" for place in range(BROKERS)]

    def data(self, place: int) -> Path:
        return self._folder / f"b{place}"

    async def open(self) -> None:
        _, help_text = await run_vestnik("serve", "--help")
        self._options = ["--routing", self._plan.strategy, "--lease", f"{self._plan.lease:g}"]
        if self._plan.advertisements:
            self._options.append("--advertisements")
        if "--heartbeat" in help_text and self._plan.lease < 60:
            self._options += ["--heartbeat", f"{self._plan.heartbeat:g}"]
        for place in range(BROKERS):
            await self.start(place)
            await self.doors[place].open()

    async def close(self) -> None:
        """Kill all brokers, also those that are stopped."""
        for place in list(self._running):
            self.kill(place)
        for proxy in (*self._proxies.values(), *self.doors):
            await proxy.close()

    # --- processes ---

    def is_up(self, place: int) -> bool:
        return place in self._running and self._running[place].poll() is None

    async def start(self, place: int) -> None:
        """Start a broker and wait until it listens."""
        log, name = self._folder / f"b{place}.log", f"b{place}"
        parent = self.parents[place]
        joins = () if parent < 0 else ("--join", (await self.link(place, parent)).address)
        files = ("--data", str(self.data(place)), "--trace", str(self.traces[place]))
        before = log.stat().st_size if log.exists() else 0
        command = (*VESTNIK, "serve", "--name", name, "--listen", self.addresses[place], *files, *joins, *self._options)
        running = self._running[place] = start(command, log)
        async with asyncio.timeout(PATIENCE):
            while b"listening on " not in log.read_bytes()[before:]:
                if running.poll() is not None:
                    raise RuntimeError(f"{name} ended with exit code {running.returncode}; see {log}")
                await asyncio.sleep(0.02)

    def kill(self, place: int) -> None:
        if (running := self._running.pop(place, None)) is not None:
            running.kill()
            running.wait()

    async def end(self, place: int) -> None:
        """End a broker in good order, or after five seconds by kill -9."""
        running = self._running[place]
        running.terminate()
        for _ in range(100):
            if running.poll() is not None:
                break
            await asyncio.sleep(0.05)
        self.kill(place)

    def freeze(self, place: int) -> None:
        self._running[place].send_signal(signal.SIGSTOP)

    def thaw(self, place: int) -> None:
        if self.is_up(place):
            self._running[place].send_signal(signal.SIGCONT)

    # --- links ---

    async def link(self, child: int, parent: int) -> LinkProxy:
        """Return the proxy between a broker and a parent of it."""
        if (child, parent) not in self._proxies:
            proxy = LinkProxy(self.ports[parent])
            await proxy.open()
            self._proxies[child, parent] = proxy
        return self._proxies[child, parent]

    def below(self, place: int) -> Iterator[int]:
        """Yield a broker and all that reach the root through it."""
        yield place
        for child, parent in enumerate(self.parents):
            if parent == place:
                yield from self.below(child)

    async def adopt(self, child: int, parent: int) -> str:
        """Replace the link of a running broker; return what went wrong, empty if nothing did."""
        old, new = await self.link(child, self.parents[child]), await self.link(child, parent)
        url = ("--url", f"vestnik://{self.addresses[child]}")
        code, said = await run_vestnik("link", "remove", old.address, *url)
        if code:
            return f"link remove: {said.strip()}"
        self.parents[child] = parent
        for _ in range(10):
            code, said = await run_vestnik("link", "add", new.address, *url)
            if not code:
                return ""
            await asyncio.sleep(0.5)
        return f"link add: {said.strip()}"

    async def restore(self) -> None:
        """Heal all connections, start and thaw all brokers, and restore the first tree."""
        for proxy in (*self._proxies.values(), *self.doors):
            proxy.heal()
        for place in range(BROKERS):
            self.thaw(place)
        wrong = [place for place in range(BROKERS) if self.parents[place] != self._original[place]]
        for place in wrong:
            self.kill(place)
        self.parents = list(self._original)
        for place in range(BROKERS):
            if not self.is_up(place):
                await self.start(place)

    async def whole(self, patience: float) -> bool:
        """Return whether within so many seconds every broker says that it reaches all others."""
        return all(await asyncio.gather(*(_reaches_all(address, patience) for address in self.addresses)))


async def _reaches_all(address: str, patience: float) -> bool:
    try:
        async with asyncio.timeout(patience), vestnik.connect(address, timeout=patience) as bus:
            while len((await bus.inspect("status"))["brokers"]) < BROKERS:
                await asyncio.sleep(0.1)
    except (TimeoutError, VestnikError):
        return False
    return True


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that nobody listens at, and that the system gives to nobody by itself."""
    found: set[int] = set()
    while len(found) < count:
        port = random.choice(PORTS)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.add(port)
    return list(found)
