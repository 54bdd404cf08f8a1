"""The Hugging Face Hub for datasets, as its own client speaks to it.

Promises: the client's requests for creating, uploading (Xet and LFS), committing, listing and downloading
are answered in the Hub's form, with its error codes, headers and limits; repositories survive a restart.
Never: a token is kept, logged or compared with anything but the three rules in `access`.
"""

from include.sandbox.hub.service import upstream

__all__ = ["upstream"]
