"""What the gateway counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Reading(NamedTuple):
    """A measurement of somebody else, with its meaning. The name of a counter ends with `_total`.

    There is a value for each combination of labels; mostly there is one, without labels.
    """

    name: str
    meaning: str
    values: Sequence[tuple[Mapping[str, str], float]]


class Durations(NamedTuple):
    """How long something took: for each bound in seconds how many were not longer, and the sum of all."""

    name: str
    meaning: str
    buckets: Sequence[tuple[float, int]]
    total: float


Readings: TypeAlias = Callable[[], Iterable[Reading | Durations]]


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
        for one in self._readings():
            yield _durations(one) if isinstance(one, Durations) else _reading(one)


def _reading(one: Reading) -> Metric:
    labels = list(one.values[0][0]) if one.values else []
    kind = CounterMetricFamily if one.name.endswith("_total") else GaugeMetricFamily
    family = kind(f"vestnik_{one.name}", one.meaning, labels=labels)
    for labelled, value in one.values:
        family.add_metric(list(labelled.values()), value)
    return family


def _durations(one: Durations) -> Metric:
    buckets = [("+Inf" if bound == float("inf") else str(bound), count) for bound, count in one.buckets]
    family = HistogramMetricFamily(f"vestnik_{one.name}", one.meaning)
    family.add_metric([], buckets, one.total)
    return family
