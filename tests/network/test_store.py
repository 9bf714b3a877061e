"""What is stored, when it is, and in which order."""

from __future__ import annotations

from pathlib import Path

from network.worlds import until
from vestnik import Event
from vestnik.broker.effects import Append
from vestnik.server.store import JournalStore


def event(id: str, source: str = "a", seq: int = 1, causes: tuple[tuple[str, str], ...] = ()) -> Event:
    return Event("t", {}, source=source, id=id, causes=causes).stamped("b", seq)


async def test_an_effect_that_nobody_waits_for_comes_after_its_cause(tmp_path: Path) -> None:
    store = JournalStore(tmp_path / "journal")
    done: list[str] = []
    for request, one in (
        (1, event("cause")),
        (0, event("effect", "e", causes=(("a", "cause"),))),
        (0, event("x", "f")),
    ):
        store.append(Append("c", (one,), request), lambda what, failure: done.append(what.events[0].id))
    await until(lambda: len(done) == 3)
    await store.close()
    assert done == ["x", "cause", "effect"]


async def test_a_position_is_told_when_all_up_to_it_was_handed_back(tmp_path: Path) -> None:
    store = JournalStore(tmp_path / "journal")
    done: list[Append] = []
    batch = Append("c", tuple([event(str(seq), seq=seq) for seq in range(1, 6)]), 1)
    store.append(batch, lambda what, failure: done.append(what))
    store._journal.sync()
    assert not done and store.position == 0
    await until(lambda: bool(done))
    assert store.position == 5
    await store.close()
