"""Reads what a broker takes as a stream, finds who wants it, derives candles and alarms, and publishes all of it back.

vestnik serve --data data/b1 &
python examples/spark_stream.py vestnik://127.0.0.1:8020
"""

from __future__ import annotations

import sys
import tempfile

import vestnik
from vestnik import Event
from vestnik.spark import session
from vestnik.spark.derive import Rise, candles, triggers
from vestnik.spark.match import match

url = sys.argv[1] if len(sys.argv) > 1 else "vestnik://127.0.0.1:8020"
MINUTE = 60_000_000
NOON = 1_800_014_400_000_000
PRICES = {"ACME": [100, 101, 99, 107, 108, 104], "INIT": [31, 30, 30, 29, 31, 31]}

with vestnik.connect_sync(url) as bus:
    for symbol, prices in PRICES.items():
        for n, price in enumerate(prices):
            data = {"symbol": symbol, "price": price}
            bus.publish(Event("quote", data, source="feed", id=f"{symbol}-{n}", time=NOON + n * MINUTE // 3))

spark = session("local[2]")
quotes = spark.readStream.format("vestnik").option("url", url).option("filter", "type = 'quote'").load()
wanted = [("ann", "price > 105"), ("bob", "symbol = 'INIT' AND price < 30")]
clients = spark.createDataFrame(wanted, "id string, filter string")

notices = match(quotes, clients).selectExpr(
    "'notice' AS type",
    "to_json(struct(subscription_id AS client, event_id AS quote)) AS data",
    "concat('notice-', subscription_id, '-', event_id) AS id",
    "array(struct(event_source AS source, event_id AS id)) AS causes",
)
bars = candles(quotes, key="symbol", value="price", window="1 minute", watermark="10 seconds")
rises = triggers(quotes, Rise(8, "1 minute"), key="symbol", value="price", watermark="10 seconds")
found = bars.union(rises).unionByName(notices, allowMissingColumns=True)

with tempfile.TemporaryDirectory() as checkpoint:
    query = (
        found.writeStream.format("vestnik")
        .option("url", url)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

SHOWN = {
    "notice": "{client} would receive {quote}",
    "candle": "{key} opened at {open}, was {high} at most and {low} at least, and closed at {close}",
    "rise": "{key} rose from {base} to {value}",
}
with vestnik.connect_sync(url) as bus:
    for line in sorted(
        SHOWN[event.type].format(**event.data) for event in bus.fetch("type IN ('notice', 'candle', 'rise')")
    ):
        print(line)
