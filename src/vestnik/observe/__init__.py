"""One stream of facts about a broker, and the folds over it.

facts               all kinds of facts, and the one function that makes them of a message and its effects
chronicle           what a broker did lately, to answer why
recorder            the records of a trace; those of a client are in client_records
calm                since when nothing has happened
counts              how many events, notifications, gaps and refusals
lags, histograms    how far subscriptions lag, and how long things take
inspection          what a broker reports of itself when it is asked
"""
