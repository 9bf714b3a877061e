"""Questions about brokers find their way to the broker that they are about, and the answers back to who asked."""

from __future__ import annotations

from vestnik.broker.effects import Consult, Consulted, Effect, Send
from vestnik.recovery.topology import Topology
from vestnik.wire.messages import Addressed, Finding, Inquiry, Message, NodeId, Question, Refused, Report


class Questions:
    """Those that arrive at one broker. It keeps nothing of them: an answer says whom it is for."""

    def __init__(self, name: NodeId, topology: Topology) -> None:
        self._name = name
        self._topology = topology

    def asked(self, message: Question, client: NodeId) -> list[Effect]:
        """A local client asks about this broker or another."""
        inquiry = Inquiry(client, message.request, message.kind, message.about)
        if message.to in ("", self._name):
            return [Consult(self._name, inquiry)]
        if self._topology.next_hop_to(message.to) is None:
            known = ", ".join(sorted(self._topology.brokers()))
            return [Send(client, Refused(message.request, f"{message.to} is not within reach; {known} are"))]
        return self._towards(message.to, inquiry)

    def inquired(self, inquiry: Inquiry, origin: NodeId) -> list[Effect]:
        """A client of another broker asks."""
        return [Consult(origin, inquiry)]

    def consulted(self, message: Consulted) -> list[Effect]:
        """There is an answer."""
        asked = message.what.inquiry
        finding = Finding(asked.client, asked.number, message.data, message.reason)
        if message.what.origin == self._name:
            return self.found(finding)
        return self._towards(message.what.origin, finding)

    def found(self, finding: Finding) -> list[Effect]:
        """An answer for a local client."""
        answer: Message = Report(finding.number, finding.data)
        if finding.reason:
            answer = Refused(finding.number, finding.reason)
        return [Send(finding.client, answer)]

    def _towards(self, broker: NodeId, body: Inquiry | Finding) -> list[Effect]:
        way = self._topology.next_hop_to(broker)
        return [] if way is None else [Send(way, Addressed(broker, self._name, body))]
