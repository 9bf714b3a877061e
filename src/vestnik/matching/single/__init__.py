"""One event at a time: an index of filters that come and go, in plain Python.

index         what users call: filters by id, filed under single values that they name
buckets       the rows under one value: a list while they are few, sieves when they are many
sieve, cells  many rows at once, by the bits of integers over a coarse view of each path
rows          one box of one filter, and the scan over such rows
constraints   value sets as tests                     stems   what a pattern begins or ends with
paths         the paths in use, and one pass over an event that reads them all
"""
