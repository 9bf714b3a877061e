"""What happened at a broker, as one stream of facts, and what is made of it.

facts               what can happen, and the one function that makes facts of what a broker is told and wants done
chronicle           what a broker did lately, for whoever asks why
recorder            the records of a trace; those of a client are in client_records
calm                since when nothing has happened
counts              how many events, notifications, gaps and refusals
lags, histograms    how far subscriptions lag, and how long things take
inspection          what a broker says of itself when it is asked
"""
