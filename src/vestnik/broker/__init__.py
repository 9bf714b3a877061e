"""One node: what a broker does with a message, as effects."""
