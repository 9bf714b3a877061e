"""Experiments: what the papers report, and what is right.

experiments       experiments by name
overlay           a network of brokers without time
routing           one strategy under several loads; routing_study is the whole experiment, routing_evidence what was
                  measured beside what is exact, routing_claims, routing_conclusions and routing_variants the verdicts,
                  routing_figures the figures, notebook what was measured before
exact, spread     what is expected in the routing experiment, and how far runs lie from it; agreement is whether what
                  was measured agrees with it
churn             what a change costs where more come than leave, and where more leave than come
selection         the same interests served by channels, by subjects and by content
compare           all strategies on the same subscriptions and publications; compare_run is one of them, compare_claims
                  the verdicts, plays what clients do, meter and complexity how large messages and filters are,
                  delays how long events take
leases            how fast brokers recover from any state
checking          how often to ask whether notifications were lost, in the paper's model; losses are the laws of them,
                  checking_runs many runs beside what is exact and what is printed (checking_printed),
                  checking_weather losses at a rate that changes, checking_client the client beside the model,
                  checking_study the whole experiment, checking_claims and checking_weather_claims the verdicts,
                  checking_figures the figures
statistics        means with their spread, and whether they agree with what is expected
results, report   what an experiment comes to: in a folder, and as one page
figures           how figures are drawn
parallel          tasks on several cores
"""
