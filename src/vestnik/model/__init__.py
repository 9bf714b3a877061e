"""What is said: events, filters, and the algebra that relates them."""

from vestnik.model.kinds import register_kind
from vestnik.model.overlaps import Overlaps

register_kind(Overlaps())
