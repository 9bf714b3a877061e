"""Experiments: what the papers report, and what is right.

experiments       experiments by name
overlay           a network of brokers without time
exact             what is expected in the routing experiment, exactly
routing           one strategy under growing loads; routing_study is the whole experiment, routing_evidence what was
                  measured beside what is exact, routing_claims the verdicts, routing_figures the figures
selection         the same interests served by channels, by subjects and by content
compare           all strategies on the same subscriptions and publications; compare_run is one of them, compare_claims
                  the verdicts, plays what clients do, meter and complexity how large messages and filters are,
                  delays how long events take
leases            how fast brokers recover from any state
statistics        means with their spread, and whether they agree with what is expected
results, report   what an experiment comes to: in a folder, and as one page
figures           how figures are drawn
parallel          tasks on several cores
"""
