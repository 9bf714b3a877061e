"""How nothing that is stored is lost to a subscription: one log per broker, one cursor per subscription and log."""
