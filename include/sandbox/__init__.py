"""Stand-ins for every upstream, for the Hub and for Slack, in one process on the loopback address.

Promises: an answer has the exact form of the upstream's own; what a generator gives is decided by its seed,
the day and the switches alone; every request is counted before it is answered. Never: no request leaves the
machine, no token is logged, and nothing here is imported by the engine.
"""
