"""How to ask and how to read: one package per upstream.

Promises: pure. A source plans requests, tells answers apart and parses them. Never: no database, no HTTP, no
clock, no other room than the contract.
"""
