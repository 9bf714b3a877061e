"""What if: brokers and clients in virtual time, with faults."""
