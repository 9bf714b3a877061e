"""New events of old ones: candles, rates and triggers, over tables and streams of events alike.

    candles(events, key="symbol", value="price", window="1 minute", watermark="10 seconds")
    rates(events, window="1 minute")
    triggers(events, Rise(5, "10 minutes"), key="symbol", value="price")

`key` and `value` are paths, as in filters. What comes back are rows of the event table: they can be published as they
are, matched, and derived from. Their ids tell what they were made of, so making them again makes no other events.

`definition` says what each of them is. The watermark is the latest time seen, less the delay that is given. A table and
a stream give the same as long as nothing comes later than that: what the watermark has reached, and that alone.
"""

from __future__ import annotations

from vestnik.spark.derive.triggered import triggers
from vestnik.spark.derive.triggers import Above, Below, Fall, Rise
from vestnik.spark.derive.windowed import candles, rates

__all__ = ["Above", "Below", "Fall", "Rise", "candles", "rates", "triggers"]
