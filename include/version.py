"""Which release this is: the one place that says it. `CHANGELOG.md` has what is in it.

Promises: numbers as in semantic versioning; before 1.0 a new middle number may ask something of an upgrade. Never:
anything is read or computed.
"""

VERSION = "0.1.0"
# The oldest schema on which this release works: the newest one of the release before, so that workers of both may be
# up side by side while an installation is upgraded. What came after it is used by this release only where it may lack.
OLDEST_SCHEMA = "0031"
