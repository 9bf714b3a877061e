"""Channels between nodes. Messages arrive in order, or not at all once the connection is cut."""

from __future__ import annotations

from typing import Final

from vestnik.sim.explore.forms import Shape, form_of
from vestnik.sim.explore.names import Name
from vestnik.wire.messages import Message


class Cut(Message, frozen=True):
    """The connection is cut: what the receiver says until it hears this is lost."""


class Made(Message, frozen=True):
    """There is a connection again."""


class Letter:
    """A message. Equal messages are one letter, so that letters are compared at no cost."""

    __slots__ = ("message", "names", "shape")

    def __init__(self, message: Message, shape: Shape, names: tuple[Name, ...]) -> None:
        self.message = message
        self.shape = shape
        self.names = names


CUT: Final = Letter(Cut(), (Cut,), ())
MADE: Final = Letter(Made(), (Made,), ())


class Channel:
    """Letters that are on their way to a node, the next one first. Equal channels are one object, too."""

    __slots__ = ("is_cut", "letters", "longer", "names", "rest", "shape")

    def __init__(self, letters: tuple[Letter, ...], shape: int) -> None:
        self.letters = letters
        self.shape = shape
        self.names = tuple([name for letter in letters for name in letter.names])
        self.is_cut = CUT in letters
        self.longer: dict[Letter, Channel] = {}
        self.rest: Channel | None = None


class Channels:
    """All letters and contents of channels that were met."""

    def __init__(self) -> None:
        self._letters: dict[Message, Letter] = {}
        self._known: dict[tuple[Letter, ...], Channel] = {}
        self._shapes: dict[tuple[Shape, ...], int] = {}
        self.empty = self.of()

    def letter(self, message: Message) -> Letter:
        known = self._letters.get(message)
        if known is None:
            form = form_of(message)
            known = self._letters[message] = Letter(message, form.shape, form.names)
        return known

    def of(self, *letters: Letter) -> Channel:
        known = self._known.get(letters)
        if known is None:
            shape = self._shapes.setdefault(tuple([one.shape for one in letters]), len(self._shapes))
            known = self._known[letters] = Channel(letters, shape)
        return known

    def push(self, channel: Channel, letter: Letter) -> Channel:
        longer = channel.longer.get(letter)
        if longer is None:
            longer = channel.longer[letter] = self.of(*channel.letters, letter)
        return longer

    def pop(self, channel: Channel) -> Channel:
        if channel.rest is None:
            channel.rest = self.of(*channel.letters[1:])
        return channel.rest
