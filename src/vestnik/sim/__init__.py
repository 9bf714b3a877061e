"""What if: brokers and clients in virtual time, with faults.

kernel        virtual time: what happens next
links         how long messages take, and what becomes of them on the way
hosts         what runs a broker core or a client session: performs their effects
network       brokers, clients and links, as one
faults        cuts, crashes and corruption
topologies    lines, stars, trees and graphs
workloads     who wants what, and what is published
scenarios     all of the above, as a file
runs          a scenario from its beginning to its end
soak          many random scenarios, each held against a checker
"""
