"""The ways to the text of a filing: DART's interface, and its web site where the interface has none.

Promises: both draw on what everything else leaves them, the interface on the ledger of keys, the site on its own
clock of two seconds a page; no key goes to the site. Never: a filing that can only be downloaded is taken for one
without a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from include.bodies import Reading
from include.contract import Answer, ParseError, Request, Stream
from include.sources.dart import answers, documents, viewer

# Of each key's day, what the analysis leaves to the list of disclosures, without which there is nothing to read.
LEFT_FOR_THE_LIST = 2_000


def readings(disclosures: Stream) -> tuple[Reading, ...]:
    """Return the ways to a text, in the order in which they are tried.

    Args:
        disclosures: the stream of the list, whose host group and calendar the interface's requests share.
    """
    nothing = replace(disclosures, tables=(), sla_eligible=False, follow=viewer.follow, leaves_quota=LEFT_FOR_THE_LIST)
    interface = replace(
        nothing,
        name="dart.bodies",
        title="Documents for the analysis",
        classify=answers.classify_archive,
        follow=lambda request, answer: (),
    )
    site = replace(
        nothing,
        name="dart.body_pages",
        title="Pages of the web site for the analysis",
        host_group=viewer.HOST_GROUP,
        classify=viewer.classify,
        leaves_quota=0,
    )
    return (
        Reading("document", interface, _document, _text_of_archive),
        Reading("viewer", site, viewer.main_request, _text_of_pages, with_key=False),
    )


def _document(rcept_no: str) -> Request:
    key = f"{rcept_no}/document"
    return Request(key, f"{answers.HOST}/api/document.xml", key, params=(("rcept_no", rcept_no),))


def _text_of_archive(rcept_no: str, title: str, pages: Sequence[Answer]) -> str:
    (archive,) = pages
    return documents.plain_text(archive.body.read(), rcept_no, title).text


def _text_of_pages(rcept_no: str, title: str, pages: Sequence[Answer]) -> str:
    found = viewer.read(pages)
    if found.state == "download_only":
        raise ParseError("the web site has it as a file alone")
    return found.text
