"""One event at a time: an index of filters that come and go.

index           what users call: filters by id, filed under single values that they name (`keys`)
codes, spans    values as integers in their order, and value sets as spans of them; patterns by their `stems`
paths           the paths in use, and one pass over an event that reads them all
store, buckets  records and their heads in flat memory
scan, kernel    which of them hold of an event: as it is meant, and compiled
checks          what settles a record where codes leave doubt
"""
