"""JSON documents of about 900 bytes, an order and where it comes from, and the rules that look for some of them."""

from __future__ import annotations

import json
import random

KINDS = ["placed", "paid", "packed", "shipped", "delivered", "returned", "cancelled", "refunded"]
COUNTRIES = ["DE", "FR", "PL", "SE", "IT", "ES", "NL", "BG", "US", "JP"]
CITIES = ["Berlin", "Hamburg", "Lyon", "Gdansk", "Malmo", "Bergamo", "Bilbao", "Utrecht", "Varna", "Boston", "Osaka"]
GOODS = ["book", "laptop", "phone", "lamp", "chair", "shoes", "coffee", "camera"]
NOTES = [
    "Please leave it with the neighbours on the second floor if nobody opens the door.",
    "Ring twice and wait: the dog is friendly, but the way to the door is a long one.",
]
TAGS = ["urgent", "gift", "fragile", "bulk", "first", "fraud-check", "split"]


def documents(count: int, seed: int = 3) -> list[bytes]:
    """`count` documents, one line each: some 30 fields on three levels, lists of strings and of maps."""
    rng = random.Random(seed)
    return [json.dumps(_order(rng), separators=(",", ":")).encode() for _ in range(count)]


def _order(rng: random.Random) -> dict[str, object]:
    number = rng.randrange(10**8)
    order = {
        "kind": rng.choice(KINDS),
        "version": 3,
        "region": rng.choice(["eu-west-1", "eu-north-1", "us-east-1", "ap-east-1"]),
        "trace": f"{rng.getrandbits(128):032x}",
        "order": {
            "code": f"ORD-{number:08}",
            "currency": rng.choice(["EUR", "EUR", "EUR", "USD", "SEK", "PLN"]),
            "total": round(rng.lognormvariate(4, 1), 2),
            "channel": rng.choice(["web", "app", "shop", "partner"]),
            "placed": f"2026-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}T{rng.randrange(24):02}:30:00Z",
            "payment": {
                "method": rng.choice(["card", "invoice", "transfer", "wallet"]),
                "attempts": rng.choice([1, 1, 1, 2, 3]),
                "risk": round(rng.random(), 3),
            },
        },
        "customer": {
            "code": f"C{rng.randrange(10**6):06}",
            "name": f"{rng.choice(['Ada', 'Emil', 'Noor', 'Ivan'])} {rng.choice(['Berg', 'Costa', 'Novak', 'Stein'])}",
            "tier": rng.choice(["gold", "silver", "basic", "basic", "basic"]),
            "returning": rng.random() < 0.6,
            "address": {
                "country": rng.choice(COUNTRIES),
                "city": rng.choice(CITIES),
                "postcode": f"{rng.randrange(10**5):05}",
                "street": f"{rng.choice(['Linden', 'Harbour', 'Mill', 'Station'])} Street {rng.randrange(1, 200)}",
            },
        },
        "shipment": {
            "carrier": rng.choice(["dhl", "ups", "dpd", "post"]),
            "weight": round(rng.uniform(0.1, 30), 2),
            "parcels": rng.randrange(1, 5),
            "window": {"start": rng.randrange(6, 12), "end": rng.randrange(12, 22)},
        },
        "items": [
            {
                "kind": rng.choice(GOODS),
                "sku": f"{rng.choice('ABCDEF')}{rng.randrange(10**5):05}",
                "quantity": rng.randrange(1, 6),
                "price": round(rng.uniform(2, 900), 2),
            }
            for _ in range(3)
        ],
        "note": rng.choice(NOTES),
        "tags": rng.sample(TAGS, rng.randrange(4)),
        "device": {
            "system": rng.choice(["ios", "android", "linux", "windows"]),
            "agent": f"shop/5.{rng.randrange(40)}.1",
        },
    }
    if rng.random() < 0.2:
        order["coupon"] = f"{rng.choice(['SPRING', 'WELCOME', 'LOYAL'])}{rng.randrange(100)}"
    return order


EQUALITY_RULES = [
    "kind = 'refunded'",
    "customer.tier = 'gold' AND kind = 'placed'",
    "customer.address.country = 'BG'",
    "customer.address.country = 'JP' AND kind = 'shipped'",
    "customer.tier = 'silver' AND customer.address.country = 'SE' AND kind = 'cancelled'",
]

MIXED_RULES = [
    *EQUALITY_RULES,
    "region = 'ap-east-1'",
    "order.channel = 'partner'",
    "order.payment.method = 'wallet' AND order.payment.attempts = 3",
    "shipment.carrier = 'post' AND shipment.parcels = 4",
    "customer.returning = TRUE AND kind = 'returned'",
    "kind IN ('cancelled', 'refunded', 'returned')",
    "customer.address.country IN ('DE', 'FR') AND order.currency IN ('USD', 'SEK')",
    "shipment.carrier IN ('dhl', 'ups') AND kind IN ('packed', 'shipped')",
    "customer.address.city IN ('Berlin', 'Hamburg') AND order.channel IN ('shop', 'app')",
    "order.total > 500",
    "order.total BETWEEN 100 AND 120",
    "order.total < 5 AND shipment.weight > 25",
    "order.payment.risk >= 0.95",
    "order.payment.risk BETWEEN 0.5 AND 0.55 AND kind = 'paid'",
    "shipment.weight > 29",
    "shipment.weight BETWEEN 10 AND 12 AND shipment.parcels >= 3",
    "shipment.window.start >= 11 AND shipment.window.end <= 13",
    "order.payment.attempts > 1 AND order.total > 200",
    "customer.tier = 'gold' AND order.total BETWEEN 50 AND 90",
    "customer.address.city LIKE 'B%'",
    "customer.address.postcode LIKE '10%'",
    "order.code LIKE 'ORD-000%'",
    "customer.name LIKE 'Ada %' AND kind = 'delivered'",
    "device.agent LIKE 'shop/5.3%' AND device.system = 'ios'",
    "coupon LIKE 'SPRING%'",
    "order.placed LIKE '2026-12-%' AND order.channel = 'shop'",
    "region LIKE 'eu-%' AND kind = 'cancelled'",
    "EXISTS coupon",
    "EXISTS coupon AND order.total > 150",
    "NOT EXISTS coupon AND customer.tier = 'gold'",
    "EXISTS shipment.window AND shipment.window.end = 21",
    "NOT (order.currency = 'EUR' OR order.channel = 'web')",
    "kind = 'paid' AND NOT order.payment.method = 'card'",
    "customer.tier != 'basic' AND device.system NOT IN ('ios', 'android')",
    "region NOT LIKE 'eu-%' AND kind = 'placed'",
    "ANY tags = 'fraud-check'",
    "ANY tags = 'urgent' AND order.total > 100",
    "ANY tags IN ('gift', 'fragile') AND kind = 'packed'",
    "ANY items (kind = 'laptop' AND price < 300)",
    "(kind = 'returned' AND order.total > 80) OR (kind = 'refunded' AND order.payment.risk > 0.8)",
]
