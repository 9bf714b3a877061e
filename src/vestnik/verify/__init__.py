"""Is it right: checkers that read traces and tables.

traces              all rules over a trace: safety, liveness, order; histories is how they see it
due, repeats        what a count from outside finds in traces of brokers: what is missing, and what comes twice
quiet               when brokers agree that nothing is on its way
validity            whether tables in a known topology deliver what is wanted, by the filter algebra
conformance         any strategy on random trees, under random operations: scripts, played in a network; corruption
agreement           whether neighbours know what they were told, and were told what they should know
stabilization       whether a network is in order
violations          a rule that does not hold, with its counterexample
"""
