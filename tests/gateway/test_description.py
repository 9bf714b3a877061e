"""What the gateway says about itself is so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.routing import Route

from gateway.webs import World, measured
from vestnik.gateway.openapi import DESCRIPTION
from vestnik.gateway.sse import PARAMETERS
from vestnik.gateway.webhooks import Wanted

METHODS = {"get", "post", "delete", "options"}
OPERATIONS = [
    (path, method, operation) for path, methods in DESCRIPTION["paths"].items() for method, operation in methods.items()
]


def within(value: Any) -> Iterator[dict[str, Any]]:
    """All objects in a JSON value."""
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from within(part)
    elif isinstance(value, list):
        for part in value:
            yield from within(part)


@pytest.mark.asyncio(loop_scope="session")
async def test_all_that_is_routed_is_described_and_nothing_else(shared: World) -> None:
    said = (await shared.http.get("/openapi.json")).json()
    assert said == DESCRIPTION
    routed = {
        (route.path, method.lower())
        for route in shared.gateway.routes
        if isinstance(route, Route) and route.path != "/ws"
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert routed == {(path, method) for path, method, _ in OPERATIONS}


def test_the_description_is_whole() -> None:
    names = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(names)) == len(names)
    for path, method, operation in OPERATIONS:
        assert method in METHODS and operation["summary"] and operation["responses"]
        given = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
        assert given == {part.strip("{}") for part in path.split("/") if part.startswith("{")}
    for found in within(DESCRIPTION):
        if "$ref" in found:
            part: Any = DESCRIPTION
            for name in found["$ref"].removeprefix("#/").split("/"):
                part = part[name]


def test_what_can_be_asked_for_is_described() -> None:
    follow = DESCRIPTION["paths"]["/events"]["get"]["parameters"]
    assert [one["name"] for one in follow if one["in"] == "query"] == list(PARAMETERS)
    assert tuple(DESCRIPTION["components"]["schemas"]["Wanted"]["properties"]) == Wanted.__struct_fields__


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/events", "get", 400),
        ("/events", "post", 415),
        ("/subscriptions", "get", 200),
        ("/subscriptions", "post", 400),
        ("/subscriptions/{id}", "get", 404),
        ("/subscriptions/{id}", "delete", 404),
        ("/metrics", "get", 200),
        ("/healthz", "get", 200),
        ("/readyz", "get", 200),
    ],
)
async def test_answers_are_as_described(shared: World, path: str, method: str, status: int) -> None:
    answer = await shared.http.request(method, path.format(id="x"))
    described = DESCRIPTION["paths"][path][method]["responses"][str(status)]
    kind = answer.headers["content-type"].partition(";")[0]
    assert (answer.status_code, kind) == (status, next(iter(described["content"])))
    schema = described["content"][kind]["schema"]
    if kind == "application/json" and "$ref" in schema:
        schema = DESCRIPTION["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        assert set(schema["required"]) <= answer.json().keys() <= schema["properties"].keys()


@pytest.mark.asyncio(loop_scope="session")
async def test_measures_have_units_and_no_ids(shared: World) -> None:
    lines = (await shared.http.get("/metrics")).text.splitlines()
    kinds = dict(line.split()[2:4] for line in lines if line.startswith("# TYPE vestnik_"))
    counters = [name for name, kind in kinds.items() if kind == "counter"]
    assert counters and all(name.endswith("_total") for name in counters)
    labels = {line.partition("{")[2].partition("=")[0] for line in lines if line.startswith("vestnik_") and "{" in line}
    assert labels <= {"way", "outcome", "le"}
    assert await measured(shared.http, "process_open_fds") > 0
