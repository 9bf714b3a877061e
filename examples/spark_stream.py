"""Reads what a broker takes as a stream, and publishes an event for each price above a limit.

vestnik serve --data data/b1 &
python examples/spark_stream.py vestnik://127.0.0.1:8020
"""

from __future__ import annotations

import sys
import tempfile

import vestnik
from vestnik import Event
from vestnik.spark import session

url = sys.argv[1] if len(sys.argv) > 1 else "vestnik://127.0.0.1:8020"
QUOTES = [("ACME", 10.5), ("INIT", 31.5), ("ACME", 12.0), ("INIT", 9.0), ("ACME", 11.0)]

with vestnik.connect_sync(url) as bus:
    bus.publish_many([Event("quote", {"symbol": symbol, "price": price}) for symbol, price in QUOTES])

spark = session("local[2]")
alarms = (
    spark.readStream.format("vestnik")
    .option("url", url)
    .option("filter", "type = 'quote' AND price > 10")
    .load()
    .selectExpr("from_json(data, 'symbol string, price double') AS quote")
    .where("quote.price >= 12")
    .selectExpr("'alarm' AS type", "to_json(quote) AS data")
)

with tempfile.TemporaryDirectory() as checkpoint:
    query = (
        alarms.writeStream.format("vestnik")
        .option("url", url)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

with vestnik.connect_sync(url) as bus:
    for event in sorted(bus.fetch("type = 'alarm'"), key=lambda event: event.data["price"]):
        print(event.data["symbol"], event.data["price"])
