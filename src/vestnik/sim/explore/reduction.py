"""Which moves have to be tried in a state, so that every outcome is still met.

A move happens at one node: it changes that node, takes the first message of a channel to it, and appends messages to
channels from it. Moves at different nodes therefore commute, and neither can prevent the other. If no move elsewhere
can give a node another move, it is enough to try the moves at that node: all others are still possible afterwards, and
come to the same (a persistent set). Operations count against one limit and faults concern several nodes, so the
reduction is used only as far as neither can interfere:

- no operation is left, and a client has nothing to do but to hear the next message: then that is all that is tried;
- no fault is left, and each channel to a broker holds a message already, or can get none before the broker moves: then
  the moves at that broker are all that is tried. A message that is appended to a channel is not the next one.

Every run of the explored world ends, so a move that is put off is tried in the end. Every maximal run is equal to one
that is tried, up to the order of moves at different nodes: so each node goes through the same states, with the same
steps, and the world comes to the same quiescent states.
"""

from __future__ import annotations

from vestnik.sim.explore.world import Move, State, World


def enough(world: World, state: State) -> list[Move]:
    """Return moves that are enough to try in a state; none if all have to be tried."""
    brokers = world.settings.brokers
    if not state.operations:
        for client in range(brokers, len(state.nodes)):
            ((channel, _),) = world.speakers[client]
            if state.channels[channel].letters and not state.nodes[client].moves:
                return [Move("deliver", channel)]
    if not (state.operations and state.faults):
        for broker in range(brokers):
            moves = list(world.moves_at(state, broker))
            if moves and world.is_up(state, broker) and _is_alone(world, state, broker):
                return moves
    return []


def _is_alone(world: World, state: State, node: int) -> bool:
    """Return whether no move elsewhere can give a node another move."""
    return all(
        state.channels[channel].letters or _is_silent(world, state, sender, node)
        for channel, sender in world.speakers[node]
    )


def _is_silent(world: World, state: State, node: int, listener: int) -> bool:
    """Return whether a node says nothing to a listener before it hears something from there."""
    if not world.is_broker(node) and state.operations:
        return False
    if not all(state.linked[channel // 2] for channel, _ in world.speakers[node]):
        return False
    if any(True for _ in world.moves_at(state, node)):
        return False
    return all(_is_silent(world, state, other, node) for _, other in world.speakers[node] if other != listener)
