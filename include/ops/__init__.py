"""Operating Daybook: what reaches a person, and what a person can do.

Promises: everything shown or sent is read from rows. Never: no state is kept here.
"""
