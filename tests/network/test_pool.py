"""Which producers run."""

from __future__ import annotations

from vestnik.client.pool import ALL, Pool


def keys(*wanted: str | None) -> frozenset[str | None]:
    return frozenset(wanted)


def test_a_producer_for_each_key_while_it_is_wanted() -> None:
    pool = Pool(linger=5)
    assert pool.want(keys("A", "B"), 0) == ([], ["A", "B"])
    assert pool.want(keys("B"), 2) == ([], []) and pool.next == 7
    assert pool.look(6) == ([], [])
    assert pool.look(7) == (["A"], []) and pool.next is None


def test_one_that_is_wanted_again_in_time_goes_on() -> None:
    pool = Pool(linger=5)
    pool.want(keys("A"), 0)
    pool.want(keys(), 1)
    assert pool.want(keys("A"), 3) == ([], []) and pool.next is None
    pool.want(keys(), 4)
    assert pool.look(9) == (["A"], [])
    assert pool.want(keys("A"), 10) == ([], ["A"])


def test_without_lingering_it_stops_at_once() -> None:
    pool = Pool(linger=0)
    pool.want(keys("A"), 0)
    assert pool.want(keys(), 1) == (["A"], [])


def test_one_for_all_is_alone() -> None:
    pool = Pool(linger=5)
    pool.want(keys("A", "B"), 0)
    pool.want(keys("A"), 1)
    assert pool.want(keys("A", "C", ALL), 2) == (["A", "B"], [ALL]) and pool.next is None
    assert pool.want(keys("A", "C"), 3) == ([], []), "it still publishes for them"
    assert pool.look(8) == ([ALL], ["A", "C"])


def test_where_the_one_for_all_ends_by_itself_the_others_go_on() -> None:
    pool = Pool(linger=5)
    pool.want(keys("A"), 0)
    assert pool.want(keys("A", ALL), 1) == (["A"], [ALL])
    assert pool.declined(2) == ([], ["A"])
    assert pool.want(keys("A", "B", ALL), 3) == ([], ["B"]), "it is not tried again"
    assert pool.want(keys("A"), 4) == ([], [])
    assert pool.want(keys(ALL), 5) == (["A", "B"], [ALL]), "now it is"
