"""Sinks: the operator says where they may be, and the answers do not tell what listens there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.webs import World, world
from network.worlds import logged
from vestnik.errors import InvalidRequest, InvalidSetting
from vestnik.gateway import handshake
from vestnik.gateway.settings import GatewaySettings, most_connections
from vestnik.gateway.sinks import Place, named_place, read_sink


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("example.org", Place("example.org", None)),
        ("Example.org:80", Place("example.org", 80)),
        ("127.0.0.1", Place("127.0.0.1", None)),
        ("::1", Place("::1", None)),
        ("[::1]:9000", Place("::1", 9000)),
        ("http://example.org", None),
        ("example.org/path", None),
        ("user@example.org", None),
        ("a b", None),
        ("", None),
        (":80", None),
        ("example.org:x", None),
    ],
)
def test_places_that_an_operator_names(text: str, place: Place | None) -> None:
    assert named_place(text) == place
    if place is None:
        with pytest.raises(InvalidSetting, match="sink"):
            GatewaySettings(sinks=(text,))


@pytest.mark.parametrize(
    ("url", "allowed", "fits"),
    [
        ("http://example.org/", "example.org", True),
        ("https://example.org/", "example.org:443", True),
        ("http://example.org/", "example.org:443", False),
        ("http://example.org:9000/", "example.org:9000", True),
        ("http://[::1]:9000/", "[::1]:9000", True),
        ("http://127.0.0.1/", "localhost", False),
        ("http://127.0.0.1/", "", False),
    ],
)
def test_sinks_are_where_the_operator_allows_them(url: str, allowed: str, fits: bool) -> None:
    places = (allowed,) if allowed else ()
    if fits:
        assert read_sink(url, places).url == url
    else:
        with pytest.raises(InvalidRequest, match="no web hook may push to") as refused:
            read_sink(url, places)
        assert refused.value.status == 403


@asynccontextmanager
async def answering(said: bytes | None) -> AsyncIterator[int]:
    """A port whose listener answers with these bytes and closes the connection, or with None says nothing."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if said is None:
            await reader.read()
        else:
            writer.write(said)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


LISTENERS = {
    "nobody": (b"", "Connect call failed"),
    "somebody silent": (None, "no answer in time"),
    "somebody who leaves": (b"", "does not speak HTTP"),
    "something else": (b"220 mail ready\r\n", "does not speak HTTP"),
    "another service": (b"HTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n", "it answered 404"),
    "a sink of others": (b"HTTP/1.1 200 x\r\nWebHook-Allowed-Origin: other\r\n\r\n", "'other'"),
    "no rate": (b"HTTP/1.1 200 x\r\nWebHook-Allowed-Origin: *\r\nWebHook-Allowed-Rate: x\r\n\r\n", "rate of 'x'"),
}


async def test_a_sink_that_does_not_agree_looks_the_same_whatever_is_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The operator is told what went wrong; who asked for the web hook gets one answer, after one time."""
    monkeypatch.setattr(handshake, "AGREE_WITHIN", 3.0)
    loop = asyncio.get_running_loop()

    async def refused(here: World, listener: str) -> tuple[int, str]:
        said, reason = LISTENERS[listener]
        async with answering(said) as port:
            sink = f"http://127.0.0.1:{1 if listener == 'nobody' else port}/"
            begun = loop.time()
            answer = await here.http.post("/subscriptions", json={"filter": "a = 1", "sink": sink})
            assert loop.time() - begun >= 2.9, listener
            told = [line for line in logged(caplog, "webhook.refused") if sink in line]
            assert len(told) == 1 and reason in told[0], (listener, told)
            return answer.status_code, answer.text

    async with world() as here:
        answers = set(await asyncio.gather(*[refused(here, listener) for listener in LISTENERS]))
    ((status, text),) = answers
    assert status == 422 and "did not agree" in text


@pytest.mark.parametrize(("descriptors", "most"), [(1024, 512), (100_000, 10_000), (1, 1), (-1, 10_000)])
def test_half_of_the_descriptors_are_for_the_broker(
    monkeypatch: pytest.MonkeyPatch, descriptors: int, most: int
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (descriptors, descriptors))
    assert most_connections(10_000) == most
