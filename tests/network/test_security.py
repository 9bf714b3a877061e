"""Who is let in, by which proof, and what they may do: with real sockets and certificates."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import ssl
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import vestnik
from network.security import Authority, access_file, secure_broker, secure_client
from network.test_brokers import talk
from network.worlds import broker, client, logged, quote, taken, until
from vestnik import Event, Filter, LocalBus, Replay
from vestnik.errors import InvalidAccess, InvalidSetting, NotAccepted, TurnedAway, Unreachable, Untrusted
from vestnik.model.times import MICROS
from vestnik.server.limits import Limits
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.transport.addresses import read_address
from vestnik.wire.frames import VERSION, Reader, frame
from vestnik.wire.leaves import opened
from vestnik.wire.messages import Delivery, Goodbye, Hello, Notify, Publish, Subscribe, Welcome

ACCESS = """
[feed]
tokens = ["{feed}"]
publish = "type IS market AND source = 'feed'"

[desk]
tokens = ["{desk}"]
certificates = ["desk.example.org"]
publish = true
subscribe = "type IS market AND price < 100"
replay = "type IS market AND price < 50"

[reader]
tokens = ["{reader}"]
subscribe = true

[admin]
tokens = ["{admin}"]
publish = true
subscribe = true
replay = true
subscriptions = true
administer = true

[b1]
certificates = ["b1"]
broker = true

[b2]
certificates = ["b2"]
broker = true

[client-only]
certificates = ["client-only"]
subscribe = true
"""
TOKENS = {"feed": "token-of-feed", "desk": "token-of-desk", "reader": "token-of-reader", "admin": "token-of-admin"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def access(tmp_path: Path) -> Path:
    return access_file(tmp_path, ACCESS, **TOKENS)


async def turned_away(address: str, hello: Hello) -> Goodbye:
    """What a broker answers to Hello followed by a publication."""
    (goodbye,) = await talk(address, frame(hello) + frame(Publish((quote(1),), request=1)))
    assert isinstance(goodbye, Goodbye)
    return goodbye


# --- tokens ---


@pytest.mark.parametrize("token", ["", "wrong", "token-of-des", "token-of-desk "])
async def test_without_a_right_token_nobody_comes_in(access: Path, token: str) -> None:
    async with broker(access=access) as b:
        goodbye = await turned_away(b.address, Hello(VERSION, "c", False, token))
        assert goodbye.code == "token" and "token" in goodbye.reason
        with pytest.raises(TurnedAway, match="token"):
            async with client(b, "c", token=token):
                pass
        assert b.host.guests == [] and b.host.core.clients == {}


async def test_the_environment_has_the_token(access: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESTNIK_TOKEN", TOKENS["desk"])
    async with broker(access=access) as b, client(b, "c"):
        assert [(guest.name, guest.is_broker) for guest in b.host.guests] == [("desk/c", False)]


def test_a_token_is_not_sent_where_others_can_read_it() -> None:
    with pytest.raises(InvalidSetting, match=r"write vestniks://broker\.example\.org:8020"):
        vestnik.connect("vestnik://broker.example.org", token="secret")


async def test_a_session_belongs_to_its_identity(access: Path) -> None:
    async with broker(access=access) as b, client(b, "c", token=TOKENS["desk"]) as desk:
        subscription = await desk.subscribe("price > 0")
        async with client(b, "c", token=TOKENS["admin"]) as other:
            await other.publish(quote(1))
            assert await taken(subscription, 1) == [1], "nobody has taken it over"
            assert sorted(guest.name for guest in b.host.guests) == ["admin/c", "desk/c"]
        async with client(b, "c", token=TOKENS["desk"]):
            with pytest.raises(TurnedAway, match="taken-over"):
                await subscription.get(10)


@pytest.mark.parametrize("name", ["", "b", "x" * 129, "a\nb", "\x1b[2J"])
async def test_names_are_checked_at_the_door(name: str) -> None:
    async with broker() as b:
        assert (await turned_away(b.address, Hello(VERSION, name))).code == "name"


# --- rights ---


async def test_a_publication_outside_of_the_right_is_refused_by_its_id(access: Path) -> None:
    async with (
        broker(access=access) as b,
        client(b, token=TOKENS["feed"]) as feed,
        client(b, token=TOKENS["desk"]) as c,
    ):
        subscription = await c.subscribe("price > 0")
        events = [
            quote(1, source="feed"),
            quote(2, source="other", id="e2"),
            Event("news", {"price": 3}, source="feed", id="e3"),
            quote(4, source="feed"),
        ]
        with pytest.raises(NotAccepted, match="2 of 4 events") as refused:
            await feed.publish_many(events)
        assert "e2 of source other: there is no right to publish it: that needs source = 'feed'" in refused.value.reason
        assert "e3 of source feed: there is no right to publish it: that needs type IS market" in refused.value.reason
        assert await taken(subscription, 2) == [1, 4]
        with pytest.raises(NotAccepted, match="no right to subscribe it: nothing is allowed"):
            await feed.subscribe("price > 0")
        with pytest.raises(NotAccepted, match="no right to replay"):
            await feed.fetch("price > 0")


async def test_who_may_not_administer_is_told_nothing(access: Path) -> None:
    async with (
        broker(access=access) as b,
        client(b, token=TOKENS["admin"]) as admin,
        client(b, token=TOKENS["desk"]) as desk,
    ):
        assert (await admin.inspect("status"))["broker"] == "b"
        for question in ("status", "link.add"):
            with pytest.raises(NotAccepted, match=f"no right to administer, which the question {question} needs"):
                await desk.inspect(question, address="127.0.0.1:1")


async def test_subscriptions_are_seen_by_those_with_the_right_to(access: Path) -> None:
    async with (
        broker(access=access) as b,
        client(b, token=TOKENS["admin"]) as admin,
        client(b, "d", token=TOKENS["reader"]) as reader,
    ):
        seen = await admin.subscribe("type IS vestnik.subscription.made")
        for wanted in ("type IS vestnik", "type > 'vestnik.' AND type < 'vestnik.z'"):
            with pytest.raises(NotAccepted, match="no right to subscribe"):
                await reader.subscribe(wanted)
        await reader.subscribe("type IS market OR type IS vestnik", name="mine")
        event = (await seen.get(10)).event
        assert event.data["client"] == "reader/d" and event.data["name"] == "mine"
        assert "vestnik" not in event.data["filter"]


async def test_nobody_publishes_what_brokers_do(access: Path) -> None:
    async with broker(access=access) as b, client(b, token=TOKENS["admin"]) as admin:
        with pytest.raises(NotAccepted, match=r"type vestnik\.subscription\.made are published by brokers only"):
            await admin.publish(Event("vestnik.subscription.made", {}))


async def test_a_subscription_is_narrowed_to_the_right(access: Path) -> None:
    async with (
        broker(access=access) as b,
        client(b, token=TOKENS["admin"]) as admin,
        client(b, "c", token=TOKENS["desk"]) as c,
    ):
        subscription = await c.subscribe("price > 10")
        assert str(subscription.filter) == "price > 10", "what was asked for"
        at_broker = b.host.core.clients["desk/c"].subscriptions[subscription.name].filter
        assert at_broker == Filter.parse("type IS market AND price > 10 AND price < 100")
        await admin.publish_many([quote(150), Event("news", {"price": 50}), quote(50)])
        assert await taken(subscription, 1) == [50]
        await subscription.change("price > 20")
        await admin.publish_many([quote(200), quote(15), quote(60)])
        assert await taken(subscription, 1) == [60]
        with pytest.raises(NotAccepted, match=r"no right to subscribe it: .*price < 100.* is allowed"):
            await c.subscribe("price > 200")


async def test_the_past_is_narrowed_to_the_right(access: Path, tmp_path: Path) -> None:
    async with (
        broker(access=access, data=tmp_path / "data") as b,
        client(b, token=TOKENS["admin"]) as admin,
        client(b, token=TOKENS["desk"]) as c,
    ):
        await admin.publish_many([quote(price) for price in (10, 60, 40)])
        assert [event.data["price"] for event in await c.fetch("price > 0")] == [10, 40]
        assert [event.data["price"] for event in await admin.fetch("price > 0")] == [10, 60, 40]
        with pytest.raises(NotAccepted, match="no right to replay all of"):
            await c.subscribe("price > 0", replay=Replay(all=True))
        subscription = await c.subscribe("price > 0 AND price < 50", replay=Replay(all=True))
        assert await taken(subscription, 2) == [10, 40]


async def test_a_review_shows_what_there_is_the_right_to_replay(access: Path, tmp_path: Path) -> None:
    async with (
        broker(access=access, data=tmp_path / "data") as b,
        client(b, token=TOKENS["admin"]) as admin,
        client(b, token=TOKENS["desk"]) as c,
        client(b, token=TOKENS["reader"]) as nobody,
    ):
        await admin.publish_many([quote(price) for price in (10, 60, 40, 70)])
        everything, some = await admin.review(), await c.review()
        assert (everything.broker, everything.first, everything.last) == ("b", 1, 4)
        assert everything.page.positions == (1, 2, 3, 4)
        assert (some.page.positions, some.page.after, some.last) == ((1, 3), 4, 4)
        assert [one.event.data["price"] for one in opened(some.page)[0]] == [10, 40]
        for wanted in ("TRUE", "price > 0"):
            with pytest.raises(NotAccepted, match="review was refused: there is no right to replay it"):
                await nobody.review(wanted)


async def said_to(b: Broker, who: str, subscribe: Subscribe) -> list[Delivery]:
    """Return what a client is sent at once if it subscribes so."""
    hello = Hello(VERSION, "c", False, TOKENS[who])
    said = await talk(b.address, frame(hello), frame(subscribe), wait=False)
    notices = [message for message in said if isinstance(message, Notify)]
    return [one for notice in notices for some in notice.deliveries for one in some.each()]


async def test_the_past_is_not_had_by_saying_that_it_was_not_seen(access: Path) -> None:
    async with broker(access=access) as b, client(b, token=TOKENS["admin"]) as admin:
        await admin.publish_many([quote(price) for price in (10, 60, 40)])
        log, second = str(b.host.core.origin), b.host.core.recovery.tail.routed - 2
        for seen in (((log, 0),), ((log, second),), (("b/1", 0),)):
            subscribe = Subscribe("s", Filter.parse("price > 0"), epoch=1, afresh=2, seen=seen, made=1, request=1)
            found = await said_to(b, "reader", subscribe)
            assert [one.event for one in found] == [None], "nothing of the past"
            assert found[0].gap is not None, "it is told that some may be missing"
        subscribe = Subscribe("s", Filter.parse("price > 0"), epoch=1, afresh=2, seen=((log, second),), request=1)
        found = await said_to(b, "admin", subscribe)
        assert [one.event.data["price"] for one in found if one.event] == [60, 40]
        assert not any(one.gap for one in found), "nothing is missing"


async def test_the_past_is_not_had_by_saying_when_a_subscription_was_made(access: Path) -> None:
    """Logs that the broker has not seen yet are read from then on."""
    async with broker(access=access) as b:
        for who, is_believed in (("reader", False), ("admin", True)):
            await said_to(b, who, Subscribe("s", Filter.parse("price > 0"), 60.0, afresh=2, made=1, request=1))
            made = b.host.core.clients[f"{who}/c"].subscriptions["s"].reader.made
            assert (made == 1) == is_believed
            assert is_believed or made > (time.time() - 60) * MICROS


async def test_the_past_is_not_had_by_changing_what_is_still_to_come(access: Path) -> None:
    async with (
        broker(access=access) as b,
        client(b, token=TOKENS["admin"]) as admin,
        client(b, token=TOKENS["desk"]) as c,
    ):
        await admin.publish_many([quote(price) for price in [*[10] * 9000, 60]])
        subscription = await c.subscribe("price < 50", seen={str(b.host.core.origin): 0}, queue=10)
        with pytest.raises(NotAccepted, match="no right to replay that of another filter"):
            await subscription.change("price < 100")
        await subscription.change("price < 20")
        assert set(await taken(subscription, 9000)) == {10}
        await until(lambda: not b.host.core.recovery.feeds.roster.own((f"desk/{c.name}", subscription.name)))
        await subscription.change("price < 100")
        await admin.publish(quote(70))
        assert await taken(subscription, 1) == [70]


@pytest.mark.parametrize(("who", "found"), [("reader", [1, 2, 3, 4, 5, 90]), ("admin", [1, 2, 3, 4, 50, 5, 60, 90])])
@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "in memory"])
async def test_the_past_is_not_had_by_reading_slowly_and_changing_the_filter(
    access: Path, tmp_path: Path, who: str, found: list[int], is_stored: bool
) -> None:
    """A slow reader is a cursor in the past: a new filter must not read from there what the one before did not want."""
    async with (
        broker(access=access, data=tmp_path / "data" if is_stored else None) as b,
        client(b, token=TOKENS["admin"]) as admin,
        client(b, "c", token=TOKENS[who]) as c,
    ):
        subscription = await c.subscribe("price < 10", queue=2)
        await admin.publish_many([quote(price) for price in (1, 2, 3, 4, 50, 5, 60)])
        await subscription.change("price < 70")
        await subscription.change("price < 100")
        await admin.publish(quote(90))
        assert await taken(subscription, len(found)) == found
        await until(lambda: not b.host.core.clients[f"{who}/c"].subscriptions[subscription.name].reader.earlier)


async def test_a_subscription_that_lags_is_not_changed_for_ever(access: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestnik.server.door.MOST_CHANGES", 3)
    async with (
        broker(access=access) as b,
        client(b, token=TOKENS["admin"]) as admin,
        client(b, token=TOKENS["reader"]) as c,
    ):
        subscription = await c.subscribe("price < 10", queue=1)
        await admin.publish_many([quote(price) for price in (1, 2, 3)])
        for most in (11, 12, 13):
            await subscription.change(f"price < {most}")
        with pytest.raises(NotAccepted, match="changed 3 times and lags"):
            await subscription.change("price < 14")
        assert await taken(subscription, 3) == [1, 2, 3]


async def test_an_advertisement_is_narrowed_to_the_right_to_publish(access: Path) -> None:
    async with broker(access=access, advertisements=True) as b, client(b, "f", token=TOKENS["feed"]) as feed:
        await feed.advertise("price > 0")
        await feed.publish(quote(1, source="feed"))
        with pytest.raises(NotAccepted, match="no right to publish"):
            await feed.advertise("type IS news")


async def test_rights_that_change_while_a_broker_runs(access: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "vestnik")
    async with (
        broker(access=access) as b,
        client(b, "a", token=TOKENS["admin"]) as admin,
        client(b, "c", token=TOKENS["desk"]) as desk,
        client(b, "r", token=TOKENS["reader"]) as reader,
    ):
        subscription, lost = await desk.subscribe("price > 0"), await reader.subscribe("price > 0")
        await admin.publish(quote(1))
        assert await taken(subscription, 1) == [1] == await taken(lost, 1)
        text = access.read_text(encoding="utf-8")
        access.write_text("[", encoding="utf-8")
        b.reload()
        assert len(logged(caplog, "access.kept")) == 1 and len(b.host.guests) == 3
        assert logged(caplog, "access.reloaded") == []
        changed = text.replace("price < 100", "price < 10").replace("[reader]", "[other]")
        access.write_text(changed, encoding="utf-8")
        b.reload()
        assert len(logged(caplog, "access.reloaded")) == 1
        assert [guest.name for guest in b.host.guests] == ["admin/a"] and list(b.host.core.clients) == ["admin/a"]
        await until(lambda: "desk/c" in b.host.core.clients and b.host.core.clients["desk/c"].subscriptions != {})
        await admin.publish_many([quote(50), quote(5)])
        assert await taken(subscription, 1) == [5]
        access.write_text(
            changed.split("[other]")[0].replace('subscribe = "type IS market AND price < 10"', ""), encoding="utf-8"
        )
        b.reload()
        with pytest.raises(NotAccepted, match="no right to subscribe it: nothing is allowed"):
            await taken(subscription, 1)
        with pytest.raises(TurnedAway, match="token is not known"):
            await admin.publish(quote(6))
        assert [guest.name for guest in b.host.guests] == ["desk/c"]
        with pytest.raises(TurnedAway, match="token"):
            async for _ in lost:
                pass


# --- TLS ---


async def test_events_go_through_tls_and_between_brokers(authority: Authority, access: Path) -> None:
    async with (
        secure_broker("b1", authority, access) as b1,
        secure_broker("b2", authority, access, (b1,)) as b2,
        secure_client(b1, authority, token=TOKENS["admin"]) as p,
        secure_client(b2, authority, token=TOKENS["desk"]) as c,
    ):
        subscription = await c.subscribe("price > 0")
        await until(lambda: len(b1.host.core.router.subscriptions) == 1)
        await p.publish_many([quote(1), quote(500), quote(2)])
        assert await taken(subscription, 2) == [1, 2]


async def test_a_certificate_is_a_proof_too(authority: Authority, access: Path) -> None:
    papers = authority.issue("desk.example.org")
    async with (
        secure_broker("b1", authority, access) as b,
        secure_client(b, authority, "c", tls_cert=papers.cert, tls_key=papers.key),
    ):
        assert [guest.name for guest in b.host.guests] == ["desk/c"]


async def test_what_is_said_with_tls_is_the_same_without_async(authority: Authority, access: Path) -> None:
    async with secure_broker("b1", authority, access) as b:

        def publish() -> str:
            url = f"vestniks://{b.address}"
            with vestnik.connect_sync(url, name="s", token=TOKENS["admin"], tls_ca=authority.file) as bus:
                bus.publish(quote(1))
                return b.host.guests[0].name

        assert await asyncio.to_thread(publish) == "admin/s"


async def test_a_broker_of_another_authority_is_not_trusted(authority: Authority, access: Path, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    async with secure_broker("b1", authority, access) as b:
        with pytest.raises(Untrusted, match="VESTNIK_CA"):
            async with secure_client(b, other, token=TOKENS["desk"]):
                pass
        with pytest.raises(Untrusted, match=r"IP address mismatch|Hostname mismatch"):
            async with vestnik.connect(
                f"vestniks://localhost:{read_address(b.address).port}", tls_ca=authority.file, token=TOKENS["desk"]
            ):
                pass


async def test_an_expired_broker_is_not_trusted(authority: Authority, access: Path) -> None:
    papers = authority.issue("b1", "127.0.0.1", expired=True)
    async with secure_broker("b1", authority, access, papers=papers) as b:
        with pytest.raises(Untrusted, match="expired"):
            async with secure_client(b, authority, token=TOKENS["desk"]):
                pass


async def test_an_expired_client_is_not_let_in(authority: Authority, access: Path, tmp_path: Path) -> None:
    foreign = Authority(tmp_path, "foreign").issue("desk.example.org", "127.0.0.2")
    async with secure_broker("b1", authority, access) as b:
        for papers in (authority.issue("desk.example.org", expired=True), foreign):
            with pytest.raises(Unreachable, match=r"(?i)expired|unknown.ca|closed"):
                async with secure_client(b, authority, tls_cert=papers.cert, tls_key=papers.key, timeout=0.5):
                    pass
        assert b.host.guests == []


async def test_a_client_without_tls_is_not_let_in(authority: Authority, access: Path) -> None:
    async with secure_broker("b1", authority, access) as b:
        with pytest.raises(Unreachable):
            async with client(b, token=TOKENS["desk"], timeout=0.5):
                pass
        assert b.host.guests == []


@pytest.mark.parametrize(("newest", "is_served"), [("TLSv1_1", False), ("TLSv1_2", True)])
async def test_old_tls_is_not_spoken(newest: str, is_served: bool, authority: Authority, access: Path) -> None:
    """The broker answers a handshake of a version that it refuses with an alert, or with nothing."""
    hello = first_flight(ssl.TLSVersion[newest])
    assert hello[0] == HANDSHAKE
    async with secure_broker("b1", authority, access) as b:
        reader, writer = await asyncio.open_connection(*read_address(b.address))
        writer.write(hello)
        answered = b""
        with suppress(ConnectionResetError):
            async with asyncio.timeout(20):
                answered = await reader.read(1)
        writer.close()
    assert answered == bytes([HANDSHAKE]) if is_served else answered in (b"", bytes([ALERT]))


ALERT, HANDSHAKE = 0x15, 0x16  # types of TLS records, and the first byte of each


def first_flight(newest: ssl.TLSVersion) -> bytes:
    """Return the first bytes of a client that speaks old TLS, whatever the system's OpenSSL allows by default."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.minimum_version = ssl.TLSVersion.TLSv1_1
        context.maximum_version = newest
    sent = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="b1").do_handshake()
    return sent.read()


async def test_half_a_handshake_is_not_waited_for(
    authority: Authority, access: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vestnik.transport.listening.HANDSHAKE_WITHIN", 0.1)
    async with secure_broker("b1", authority, access) as b:
        host, port = read_address(b.address)
        reader, writer = await asyncio.open_connection(host, port)
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        writer.close()


def hang_up(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)


def speak_something_else(connection: socket.socket) -> None:
    connection.sendall(b"GET / HTTP/1.1\r\n\r\n")


def trust_nobody(connection: socket.socket) -> None:
    with pytest.raises(ssl.SSLError):
        ssl.create_default_context().wrap_socket(connection, server_hostname="127.0.0.1")


@pytest.mark.parametrize(
    ("do", "reason"),
    [(speak_something_else, r"(?i)http.request"), (trust_nobody, r"(?i)unknown.ca"), (hang_up, "")],
)
async def test_a_connection_that_does_not_agree_on_tls_is_logged(
    do: Callable[[socket.socket], None],
    reason: str,
    authority: Authority,
    access: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "vestnik")
    event = "connection.refused" if reason else "connection.closed"
    async with secure_broker("b1", authority, access) as b:
        with socket.create_connection(read_address(b.address), timeout=20) as connection:
            host, port = connection.getsockname()
            await asyncio.to_thread(do, connection)
            await until(lambda: bool(logged(caplog, event)))
    (told,) = logged(caplog, event)
    assert f"'peer': '{host}:{port}'" in told and re.search(reason, told)
    assert ("'code': 'tls'" in told) == bool(reason)


async def test_a_handshake_that_gives_way_or_takes_too_long_is_logged(
    authority: Authority, access: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("vestnik.transport.listening.HANDSHAKE_WITHIN", 0.5)
    async with secure_broker("b1", authority, access, limits=Limits(strangers=1)) as b:
        with (
            socket.create_connection(read_address(b.address), timeout=20) as first,
            socket.create_connection(read_address(b.address), timeout=20) as second,
        ):
            peers = [first.getsockname()[1], second.getsockname()[1]]
            await until(lambda: len(logged(caplog, "connection.refused")) == 2)
    busy, late = logged(caplog, "connection.refused")
    assert "'code': 'busy'" in busy and f":{peers[0]}'" in busy and "have not agreed on TLS" in busy
    assert "'code': 'tls'" in late and f":{peers[1]}'" in late and "longer than 0.5 seconds" in late


async def test_a_certificate_is_renewed_while_a_broker_runs(authority: Authority, access: Path) -> None:
    papers = authority.issue("b1", "127.0.0.1", expired=True)
    async with secure_broker("b1", authority, access, papers=papers) as b:
        fresh = authority.issue("b1", "127.0.0.1")
        papers.cert.write_bytes(fresh.cert.read_bytes())
        papers.key.write_bytes(fresh.key.read_bytes())
        b.reload()
        async with secure_client(b, authority, token=TOKENS["desk"]) as c:
            assert c.is_connected


# --- neighbours ---


async def test_a_client_that_says_it_is_a_broker_is_sent_away(authority: Authority, access: Path) -> None:
    async with broker(access=access) as b:
        goodbye = await turned_away(b.address, Hello(VERSION, "b1", True, TOKENS["admin"], "merging"))
        assert (goodbye.code, "b1 may not be a neighbour" in goodbye.reason) == ("rights", True)
    async with secure_broker("b1", authority, access) as b:
        for name, shown in (("b2", "client-only"), ("client-only", "client-only"), ("b3", "b2")):
            papers = authority.issue(shown)
            context = ssl.create_default_context(cafile=authority.file)
            context.load_cert_chain(papers.cert, papers.key)
            reader, writer = await asyncio.open_connection(*read_address(b.address), ssl=context)
            writer.write(frame(Hello(VERSION, name, True, "", "merging")))
            async with asyncio.timeout(20):
                (said,) = Reader().read(await reader.read())
            writer.close()
            assert isinstance(said, Goodbye) and said.code == "rights" and shown in said.reason
        assert b.host.guests == []


async def test_a_broker_inside_a_program_shows_its_certificate(authority: Authority, access: Path) -> None:
    papers = authority.issue("b2")
    async with secure_broker("b1", authority, access) as b1:
        local = LocalBus(join=b1.address, broker="b2", tls_cert=papers.cert, tls_key=papers.key, tls_ca=authority.file)
        async with local as bus, secure_client(b1, authority, token=TOKENS["admin"]) as p:
            subscription = await bus.subscribe("price > 0")
            await until(lambda: len(b1.host.core.router.subscriptions) == 1)
            await p.publish(quote(1))
            assert await taken(subscription, 1) == [1]


async def test_a_broker_does_not_link_with_one_that_it_does_not_know(
    authority: Authority, access: Path, caplog: pytest.LogCaptureFixture
) -> None:
    papers = authority.issue("b9", "127.0.0.1")
    async with (
        secure_broker("b1", authority, access, papers=papers) as false,
        secure_broker("b2", authority, access, (false,)) as joining,
    ):
        refusal = "b1 may not be a neighbour by its certificate (b9)"
        await until(lambda: any(refusal in told for told in logged(caplog, "link.failed")))
        assert joining.host.guests == []


async def test_a_neighbour_may_have_filters_of_many_boxes() -> None:
    async with (
        broker("b1", limits=Limits(filter_boxes=2)) as b1,
        broker("b2", (b1,)) as b2,
        client(b1) as p,
        client(b2) as c,
    ):
        subscription = await c.subscribe("a = 1 OR b = 1 OR c = 1")
        await until(lambda: len(b1.host.core.router.subscriptions) > 0)
        await p.publish(Event("t", {"c": 1, "price": 7}))
        assert await taken(subscription, 1) == [7]


# --- settings and files ---


def test_settings_that_are_not_safe(tmp_path: Path) -> None:
    file = tmp_path / "x"
    for name in ("tls_cert", "tls_key", "tls_ca"):
        with pytest.raises(InvalidSetting, match="set tls_cert and tls_key"):
            broker(**_one(name, file))
    with pytest.raises(InvalidSetting, match=r"from other machines.*set access.*--access FILE"):
        broker(listen=read_address("0.0.0.0:0"), tls_cert=file, tls_key=file)
    Settings(name="b", listen=read_address("0.0.0.0:0"), tls_cert=file, tls_key=file, access=file)


def _one(name: str, value: object) -> dict[str, Any]:
    return {name: value}


async def test_files_that_cannot_be_used(authority: Authority, access: Path, tmp_path: Path) -> None:
    papers = authority.issue("b1")
    missing = tmp_path / "missing.pem"
    for cert, key, ca, match in (
        (missing, papers.key, authority.file, "tls_cert: .*missing.pem"),
        (papers.cert, access, authority.file, "tls_cert: .*access.toml"),
        (papers.cert, papers.key, access, "tls_ca: .*access.toml"),
    ):
        with pytest.raises(InvalidSetting, match=match):
            async with Broker(Settings(name="b", tls_cert=cert, tls_key=key, tls_ca=ca)):
                pass
    with pytest.raises(InvalidAccess, match=r"missing\.toml: No such file"):
        async with broker(access=tmp_path / "missing.toml"):
            pass
    with pytest.raises(InvalidSetting, match="missing"):
        vestnik.connect("vestniks://127.0.0.1", tls_ca=missing)
    with pytest.raises(InvalidSetting, match="write vestniks://"):
        vestnik.connect("127.0.0.1", tls_ca=authority.file)


WRONG = {
    "no TOML": ("[", "no TOML"),
    "no table": ("x = 1", r"\[x\]"),
    "no proof": ("[x]\npublish = true", "vestnik token new x"),
    "a token as itself": ("[x]\ntokens = ['secret']", "not as itself"),
    "an unknown right": ("[x]\ncertificates = ['x']\nread = true", "read.*publish, subscribe"),
    "no filter": ("[x]\ncertificates = ['x']\npublish = 'price >'", r"\[x\] publish: .*column"),
    "a broker by token": ("[x]\ntokens = ['{t}']\nbroker = true", "certificate"),
    "a slash": ("['x/y']\ntokens = ['{t}']", "x/y has a /"),
    "twice": ("[x]\ncertificates = ['n']\n[y]\ncertificates = ['n']", "n is there twice"),
}


@pytest.mark.parametrize(("text", "reason"), WRONG.values(), ids=WRONG)
async def test_access_files_that_mean_nothing(tmp_path: Path, text: str, reason: str) -> None:
    path = access_file(tmp_path, text, t="token")
    with pytest.raises(InvalidAccess, match=f"(?s){re.escape(str(path))}: .*{reason}"):
        async with broker(access=path):
            pass


async def test_hello_is_answered_by_welcome_alone(access: Path) -> None:
    async with broker(access=access) as b:
        said = await talk(b.address, frame(Hello(VERSION, "c", False, TOKENS["desk"])), wait=False)
        assert said == [Welcome(VERSION, "b")]
