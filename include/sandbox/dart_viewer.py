"""DART's web site: the main page of a filing with the tree of its parts, and the page of a part.

Promises: the pages are of the very document that the archive has; one without chapters has no tree, only a call that
shows it. Never: a filing that is not there yet has a page.
"""

from __future__ import annotations

import re
from html import escape

from include.sandbox.dart_documents import Place, encoded, places, written
from include.sandbox.dart_filings import Filing
from include.sandbox.exchange import Answer

HOST = "dart.fss.or.kr"
MAIN, PART = "/dsaf001/main.do", "/report/viewer.do"
HTML = ("Content-Type", "text/html;charset=UTF-8")
NOT_FOUND = Answer(
    200,
    "<html><head><title>전자공시시스템</title></head><body><p>해당 공시가 없습니다.</p></body></html>".encode(),
    (HTML,),
)
_HOUSE_TAG = re.compile(r"<(/?)(SECTION-[1-3]|TITLE|P|TE|TABLE|TBODY|TR|TD)\b([^<>]*)>")
_AS_HTML = {"TITLE": "p", "P": "p", "TE": "td", "TABLE": "table", "TBODY": "tbody", "TR": "tr", "TD": "td"}


def document_number(filing: Filing) -> str:
    """The number by which the site names the document of a filing."""
    return str(9_000_000 + int(filing.rcept_no[-6:]) * 3)


def main_page(filing: Filing | None) -> Answer:
    """Answer with a filing's main page."""
    if filing is None:
        return NOT_FOUND
    found, document = written(filing), document_number(filing)
    script = f"viewDoc('{filing.rcept_no}', '{document}', '0', '0', '0', 'HTML', '')" if found.is_page else ""
    if not found.is_page:
        script = _tree(filing.rcept_no, document, places(found))
    attached = ""
    if found.name == "사업보고서":
        attached = f'<option value="rcpNo={filing.rcept_no}&amp;dcmNo={int(document) + 1}">감사보고서</option>'
    body = (
        f"<!DOCTYPE html><html><head><title>{escape(filing.company.name)}/{escape(found.name)}</title></head><body>\n"
        f'<select id="att"><option value="null">+첨부선택+</option>{attached}</select>\n'
        '<button type="button" class="btnDown">다운로드</button>\n'
        f"<script>\n\tvar treeData = [];\n{script}\n</script></body></html>\n"
    )
    return Answer(200, body.encode(), (HTML,))


def _tree(number: str, document: str, parts: list[Place]) -> str:
    lines: list[str] = []
    waiting: list[int] = []
    for order, part in enumerate(parts, start=1):
        while waiting and waiting[-1] >= part.level:
            lines.append(_push(waiting.pop()))
        waiting.append(part.level)
        node = f"node{part.level}"
        said = {
            "text": part.title,
            "id": order,
            "rcpNo": number,
            "dcmNo": document,
            "eleId": order,
            "offset": part.offset,
            "length": part.length,
            "dtd": "dart4.xsd",
            "tocNo": order,
        }
        lines.append(f"\t\tvar {node} = {{}};")
        lines += [f"\t\t{node}['{key}'] = \"{escape(str(value))}\";" for key, value in said.items()]
        lines.append(f"\t\t{node}['children'] = [];")
    lines += [_push(level) for level in reversed(waiting)]
    return "\n".join(lines)


def _push(level: int) -> str:
    return f"\t\tnode{level - 1}['children'].push(node{level});" if level > 1 else "\t\ttreeData.push(node1);"


def part_page(filing: Filing | None, offset: int, length: int) -> Answer:
    """Answer with the page of a part; of a document without chapters with the document itself."""
    if filing is None:
        return NOT_FOUND
    found = written(filing)
    if found.is_page:
        return Answer(200, encoded(found), (("Content-Type", "text/html"),))
    inner = _HOUSE_TAG.sub(_as_html, found.source[offset : offset + length]).replace("&cr;", "<br/>")
    return Answer(200, f"<html><head><title></title></head><body>\n{inner}\n</body></html>\n".encode(), (HTML,))


def _as_html(found: re.Match[str]) -> str:
    name = _AS_HTML.get(found[2], "div")
    return f"<{found[1]}{name}>"
