"""Many events at a time: filters compiled into flat tables, batches read as columns of ranks.

compiled   what users call
engine     a compiled index over columns; lists are batches of their elements
filing     boxes to records under access keys          tables     records to the arrays that the kernels read
lines      values to ranks, one line per path           patterns   automata as arrays
kernels    the loops, compiled by numba
columns    batches of Python values as columns          arrow, documents   Arrow batches and JSON text as columns
                                                        arrow_values       rows of Arrow columns as Python values
intervals  boxes as intervals of ranks, for a join of tables
mapped     arrays in one file, mapped into memory
"""
