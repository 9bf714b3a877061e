"""`script/attacks`: how long somebody innocent waits beside each attack.

For each attack there is a new broker, with a folder, an access file and a gateway. One publisher and one subscriber, in
a process of their own, exchange an event every 20 ms while it is attacked, and for two seconds after that.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import vestnik
from attacks.gateway_attacks import GATEWAY_ATTACKS
from attacks.gateways import MIB, TOKEN, Victim, neighbour, victim, with_access
from attacks.protocol import ATTACKS, Attack, filters_hard_to_compare

EVERY = 0.02
AFTERWARDS = 2.0
LONGEST = 120.0
"""Seconds after which an attack is ended."""


async def innocents(address: str) -> None:
    """Exchange events until standard input is closed; print the seconds that each took."""
    taken: list[float] = []
    closed = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    async with (
        vestnik.connect(address, name="alice", token=TOKEN) as alice,
        vestnik.connect(address, name="bob", token=TOKEN) as bob,
    ):
        subscription = await bob.subscribe("type IS innocent")
        sys.stdout.write("ready\n")
        sys.stdout.flush()

        async def take() -> None:
            async for notification in subscription:
                taken.append(time.monotonic() - notification.event.data["at"])

        taking = asyncio.create_task(take())
        sending: set[asyncio.Task[None]] = set()
        sent = 0
        while not closed.done():
            sent += 1
            task = asyncio.create_task(alice.publish(vestnik.Event("innocent", {"at": time.monotonic()})))
            sending.add(task)
            task.add_done_callback(sending.discard)
            await asyncio.sleep(EVERY)
        await asyncio.gather(*sending)
        for _ in range(1000):
            if len(taken) == sent:
                break
            await asyncio.sleep(0.01)
        taking.cancel()
    sys.stdout.write(json.dumps({"sent": sent, "taken": taken}) + "\n")


async def attacked(attack: Attack | None) -> dict[str, float | str]:
    with tempfile.TemporaryDirectory() as folder:
        is_linked = attack is filters_hard_to_compare  # links need certificates if there is an access file
        access = () if is_linked else with_access(Path(folder))
        with ExitStack() as stack:
            target = stack.enter_context(victim("--data", f"{folder}/data", *access, descriptors=1024))
            if is_linked:
                stack.enter_context(neighbour(target))
            return await _beside(target, attack)


async def _beside(target: Victim, attack: Attack | None) -> dict[str, float | str]:
    command = [sys.executable, "-m", "attacks.measure", "--innocents", target.broker]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as pair:
        assert pair.stdin is not None and pair.stdout is not None
        assert await asyncio.to_thread(pair.stdout.readline) == "ready\n"
        begun = time.monotonic()
        outcome = ""
        if attack is not None:
            try:
                async with asyncio.timeout(LONGEST):
                    await attack(target)
            except TimeoutError:
                outcome = f"ended after {LONGEST:g} s"
            except (AssertionError, OSError) as error:
                outcome = f"{type(error).__name__}: {error}"
        took = time.monotonic() - begun
        await asyncio.sleep(AFTERWARDS)
        pair.stdin.close()
        found = json.loads(await asyncio.to_thread(pair.stdout.readline))
    waits = sorted(found["taken"])
    return {
        "attack": attack.__name__ if attack is not None else "none",
        "seconds": took,
        "longest": waits[-1] * 1000,
        "p99": waits[int(len(waits) * 0.99)] * 1000,
        "p50": waits[len(waits) // 2] * 1000,
        "lost": found["sent"] - len(waits),
        "memory": target.peak / MIB,
        "outcome": outcome,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="script/attacks", description=__doc__)
    parser.add_argument("names", nargs="*", help="attacks to run; all of them unless some are named")
    parser.add_argument("--repeat", type=int, default=1, help="how often each is run")
    parser.add_argument("--innocents", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.innocents:
        asyncio.run(innocents(given.innocents))
        return
    every = {attack.__name__: attack for attack in (*ATTACKS, *GATEWAY_ATTACKS)}
    if unknown := set(given.names) - set(every):
        parser.error(f"no attack called {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    chosen = [every[name] for name in given.names] if given.names else [None, *every.values()]
    sys.stdout.write("| attack | took s | longest wait ms | p99 ms | p50 ms | lost | peak MiB | |\n")
    sys.stdout.write("| --- | --- | --- | --- | --- | --- | --- | --- |\n")
    for attack in chosen:
        for _ in range(given.repeat):
            row = asyncio.run(attacked(attack))
            waits = f"{row['longest']:.0f} | {row['p99']:.0f} | {row['p50']:.1f}"
            outcome = f"{row['lost']} | {row['memory']:.0f} | {row['outcome']}"
            sys.stdout.write(f"| {row['attack']} | {row['seconds']:.1f} | {waits} | {outcome} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
