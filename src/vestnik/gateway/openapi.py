"""What the gateway says about itself: the OpenAPI description of its routes. The guide describes the WebSocket."""

from __future__ import annotations

from typing import Any, Final

from vestnik.gateway.http_events import BATCH, PLAIN, STRUCTURED, TOLD

_JSON: Final = "application/json"


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _says(meaning: str, schema: dict[str, Any] | None = None, kind: str = _JSON) -> dict[str, Any]:
    return (
        {"description": meaning} if schema is None else {"description": meaning, "content": {kind: {"schema": schema}}}
    )


def _wrong(*statuses: int) -> dict[str, Any]:
    return {str(status): _says(_MEANINGS[status], _ref("Problem")) for status in statuses}


def _parameter(name: str, place: str, meaning: str, *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": place, "description": meaning, "required": required, "schema": {"type": "string"}}


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


_MEANINGS: Final = {
    400: "Wrong input: what is wrong, and where.",
    401: "The token is missing or not known.",
    403: "The broker, or the gateway's settings, do not allow it.",
    404: "There is no such subscription.",
    408: "The body did not come in time.",
    413: "The body is too large, or has too many events; the answer names the limit.",
    415: "The content type is not understood.",
    422: "The sink did not agree.",
    503: "The broker cannot be reached, or a limit is reached: try again later.",
}
_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_ID: Final = _parameter("id", "path", "The subscription.", required=True)

DESCRIPTION: Final[dict[str, Any]] = {
    "openapi": "3.1.0",
    "info": {
        "title": "Vestnik gateway",
        "version": "1",
        "description": "Publish and subscribe by content. The whole interface is at /ws, a WebSocket.",
    },
    "security": [{}, {"token": []}],
    "paths": {
        "/events": {
            "get": {
                "operationId": "follow",
                "summary": "Events as they come, as Server-Sent Events; `gap` events tell what is lost.",
                "parameters": [
                    _parameter("filter", "query", "Which events.", required=True),
                    _parameter("replay", "query", "Past events first: all, last=N, since=TIME or latest_by=PATH."),
                    _parameter("queue", "query", "How many wait here for a reader that is slow."),
                    _parameter("overflow", "query", "When more wait: block, drop-oldest or disconnect."),
                    _parameter("Last-Event-ID", "header", "Continue the stream after this event."),
                ],
                "responses": {
                    "200": _says("A stream without an end.", _TEXT, "text/event-stream"),
                    **_wrong(400, 401, 403, 503),
                },
            },
            "post": {
                "operationId": "publish",
                "summary": "Publish CloudEvents: one in headers and body, one in the body, or several in the body.",
                "requestBody": {
                    "required": True,
                    "content": {
                        STRUCTURED: {"schema": _ref("Event")},
                        BATCH: {"schema": {"type": "array", "items": _ref("Event")}},
                        PLAIN: {"schema": {"type": "object"}},
                    },
                },
                "responses": {
                    "200": _says("The broker has all of them.", _ref("Outcome")),
                    "207": _says("The broker has those that are not refused.", _ref("Outcome")),
                    "500": _says("The broker cannot tell whether some are stored, and has no other.", _ref("Outcome")),
                    **_wrong(400, 401, 403, 408, 413, 415, 503),
                },
            },
            "options": {
                "operationId": "mayPush",
                "summary": "Whether CloudEvents web hooks may push here.",
                "parameters": [_parameter("WebHook-Request-Origin", "header", "Who asks.")],
                "responses": {"200": _says("They may: WebHook-Allowed-Origin says so.")},
            },
        },
        "/subscriptions": {
            "get": {
                "operationId": "listSubscriptions",
                "summary": "The webhooks that were made with this token.",
                "responses": {
                    "200": _says("All of them.", {"type": "array", "items": _ref("Subscription")}),
                    **_wrong(401, 503),
                },
            },
            "post": {
                "operationId": "subscribe",
                "summary": "Push events to a sink, in order, each until the sink has taken it.",
                "requestBody": {"required": True, "content": {_JSON: {"schema": _ref("Wanted")}}},
                "responses": {
                    "201": _says("The sink agreed, and the broker has the subscription.", _ref("Subscription")),
                    **_wrong(400, 401, 403, 408, 413, 422, 503),
                },
            },
        },
        "/subscriptions/{id}": {
            "get": {
                "operationId": "getSubscription",
                "summary": "What became of a webhook.",
                "parameters": [_ID],
                "responses": {"200": _says("It.", _ref("Subscription")), **_wrong(401, 404, 503)},
            },
            "delete": {
                "operationId": "unsubscribe",
                "summary": "Push no more.",
                "parameters": [_ID],
                "responses": {"204": _says("It is over."), **_wrong(401, 404, 503)},
            },
        },
        "/metrics": {
            "get": {
                "operationId": "measure",
                "summary": "What is counted, for Prometheus.",
                "responses": {"200": _says("The text format.", _TEXT, "text/plain")},
            }
        },
        "/healthz": {
            "get": {
                "operationId": "isAlive",
                "summary": "Whether the process answers.",
                "responses": {"200": _says("It does.", _object(["alive"], alive={"type": "boolean"}))},
            }
        },
        "/readyz": {
            "get": {
                "operationId": "isReady",
                "summary": "Whether the broker has joined its neighbours.",
                "responses": {
                    "200": _says("It has.", _ref("Readiness")),
                    "503": _says("It waits for some.", _ref("Readiness")),
                },
            }
        },
        "/openapi.json": {
            "get": {
                "operationId": "describe",
                "summary": "This description.",
                "responses": {"200": _says("OpenAPI 3.1.", {"type": "object"})},
            }
        },
    },
    "components": {
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        "schemas": {
            "Event": _object(
                ["specversion", "id", "source", "type"],
                specversion={"const": "1.0"},
                id=_TEXT,
                source=_TEXT,
                type=_TEXT,
                data={"type": "object"},
            ),
            "Outcome": _object(
                ["published", "refused", "refused_count"],
                published=_COUNT,
                refused_count=_COUNT,
                refused={
                    "type": "array",
                    "maxItems": TOLD,
                    "items": _object(
                        ["index", "reason"],
                        index=_COUNT,
                        reason=_TEXT,
                        id=_TEXT,
                        source=_TEXT,
                        where=_TEXT,
                        unknown={"type": "boolean"},
                    ),
                },
            ),
            "Wanted": _object(["filter", "sink"], filter=_TEXT, sink=_TEXT, replay=_TEXT, token=_TEXT),
            "Subscription": _object(
                ["id", "filter", "sink", "protocol", "state", "reason", "delivered", "refused", "lost"],
                id=_TEXT,
                filter=_TEXT,
                sink=_TEXT,
                protocol={"const": "HTTP"},
                state={"enum": ["active", "failing", "ended"]},
                reason=_TEXT,
                delivered=_COUNT,
                refused=_COUNT,
                lost=_COUNT,
            ),
            "Readiness": _object(
                ["ready", "waits"], ready={"type": "boolean"}, waits={"type": "array", "items": _TEXT}
            ),
            "Problem": _object(["error"], error=_TEXT, where=_TEXT),
        },
    },
}
