"""What the gateway counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Readings: TypeAlias = Callable[[], Mapping[str, tuple[float, str]]]
"""What somebody else measures, by name, and what it means; what only grows has a name that ends with `_total`."""


class Metrics:
    """The way something goes is its label: `http`, `websocket`, `sse` or `webhook`."""

    def __init__(self, readings: Readings) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._registry.register(_Read(readings))
        self.published = self._counter("events_published", "Events that the broker took.", "way")
        self.refused = self._counter("events_refused", "Events that were not taken.", "way")
        self.delivered = self._counter("notifications_delivered", "Notifications that were handed on.", "way")
        self.lost = self._counter("notifications_lost", "Notifications that a gap was told of.", "way")
        self.resumed = self._counter("streams_resumed", "Streams that were continued.")
        self.attempts = self._counter("webhook_attempts", "Requests to sinks.", "outcome")
        self.connections = Gauge(
            "vestnik_gateway_connections", "Streams and sockets that are open.", ["way"], registry=self._registry
        )
        self.publish_seconds = Histogram(
            "vestnik_gateway_publish_seconds", "Until the broker acknowledged.", registry=self._registry
        )

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"vestnik_gateway_{name}_total", meaning, labels, registry=self._registry)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Read(Collector):
    def __init__(self, readings: Readings) -> None:
        self._readings = readings

    def collect(self) -> Iterable[Metric]:
        for name, (value, meaning) in self._readings().items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield kind(f"vestnik_{name}", meaning, value)
