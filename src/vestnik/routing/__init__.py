"""Where it goes: what a broker tells its neighbours, and to whom it forwards an event.

strategies          flooding, simple, identity, covering, merging, one file each; hierarchical varies any of them
reductions          the contract of a strategy: what one neighbour should know, kept up to date
propagation         a table of interests, and what each neighbour was told of it; leases
router              the tables of one broker; advertisements wrap it
cover_index         which of many filters cover one, and which it covers
declarative         what neighbours should know, computed from scratch: the definition
registry            strategies by name
timing              how long leases must be, and how long a network takes until it is in order
"""
