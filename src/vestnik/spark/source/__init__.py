"""Brokers as a data source of Spark: `format("vestnik")` reads what they took, and publishes rows as events."""
