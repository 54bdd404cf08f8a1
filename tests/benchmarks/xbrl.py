"""Measures reading XBRL instances against Arelle, edgartools and lxml's streaming parser on the same instances.

    ./run bench -k xbrl                                          with fewer rounds
    python tests/benchmarks/xbrl.py [--rounds 5] [--instance FILE …]

Promises: every reader gives the same facts (concept, context with its period and dimensions, unit, decimals, nil,
value), and this is checked before anything is counted; all of them begin with the text in memory, Arelle with a file,
as it reads nothing else, and without the schemas, which it would fetch. Only processor time of this process counts.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from include.sources.sec.xbrl import Instance
from tests.benchmarks.measuring import Cost, Judged, interleaved, judge, most_held, ratios, spending, summary

# Facts, and words of the longest text, of a current report, a quarterly and an annual one.
SIZES = (("current report", 60, 200), ("quarterly report", 900, 1_500), ("annual report", 3_500, 2_400))
AIM = 5.0

Told = tuple[str, str, str, str | None, str | None, bool, str]


def generated(facts: int, words: int, seed: int = 7) -> bytes:
    """An instance as EDGAR extracts it: contexts with dimensions first, one text in twelve facts."""
    random = Random(seed)
    axes = (
        "us-gaap:StatementClassOfStockAxis",
        "srt:ProductOrServiceAxis",
        "us-gaap:FairValueByFairValueHierarchyLevelAxis",
    )
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>\n<xbrl xmlns="http://www.xbrl.org/2003/instance" '
        'xmlns:dei="http://xbrl.sec.gov/dei/2026" xmlns:iso4217="http://www.xbrl.org/2003/iso4217" '
        'xmlns:link="http://www.xbrl.org/2003/linkbase" xmlns:srt="http://fasb.org/srt/2026" '
        'xmlns:us-gaap="http://fasb.org/us-gaap/2026" xmlns:xbrldi="http://xbrl.org/2006/xbrldi" '
        'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">',
        '<link:schemaRef xlink:href="example-20260630.xsd" xlink:type="simple"/>',
    ]
    contexts = max(facts // 4, 4)
    for number in range(contexts):
        members = "".join(
            f'<xbrldi:explicitMember dimension="{axis}">us-gaap:P{random.randrange(40)}Member</xbrldi:explicitMember>'
            for axis in axes[: random.choice((0, 1, 1, 1, 2, 3))]
        )
        segment = f"<segment>{members}</segment>" if members else ""
        period = random.choice(
            ("<instant>2026-06-30</instant>", "<startDate>2026-04-01</startDate><endDate>2026-06-30</endDate>")
        )
        lines.append(
            f'<context id="c-{number}"><entity><identifier scheme="http://www.sec.gov/CIK">0000765432</identifier>{segment}'
            f"</entity><period>{period}</period></context>"
        )
    lines += [
        '<unit id="usd"><measure>iso4217:USD</measure></unit>',
        '<unit id="usdPerShare"><divide><unitNumerator><measure>iso4217:USD</measure></unitNumerator>'
        "<unitDenominator><measure>shares</measure></unitDenominator></divide></unit>",
    ]
    for number in range(facts):
        context = f"c-{random.randrange(contexts)}"
        if number % 12 == 5:
            text = "&lt;p style=&quot;margin:0&quot;&gt;word&amp;#160;word&lt;/p&gt; " * random.randrange(1, words // 6)
            name = f"us-gaap:Text{number}Block"
            lines.append(f'<{name} contextRef="{context}" id="f-{number}">{text.strip()}</{name}>')
        elif number % 97 == 3:
            lines.append(f'<us-gaap:Gone{number} contextRef="{context}" id="f-{number}" unitRef="usd" xsi:nil="true"/>')
        else:
            name, unit = f"us-gaap:Concept{random.randrange(400)}", random.choice(("usd", "usd", "usd", "usdPerShare"))
            value = f"{random.randrange(-(10**6), 10**9)}000" if unit == "usd" else f"{random.randrange(1000) / 100}"
            lines.append(
                f'<{name} contextRef="{context}" decimals="-3" id="f-{number}" unitRef="{unit}">{value}</{name}>'
            )
    return "\n".join([*lines, "</xbrl>"]).encode()


@dataclass(frozen=True)
class Reader:
    """One way to read an instance: `read` gives whatever it gives, `told` the facts in it in one form."""

    name: str
    read: Callable[[bytes, Path], Any]
    told: Callable[[Any], list[Told]]


# --- ours


def _ours(content: bytes, file: Path) -> Any:
    size = 1 << 18
    instance = Instance((content[at : at + size] for at in range(0, len(content), size)), "utf-8")
    return list(instance.facts())


def _told_by_us(facts: Any) -> list[Told]:
    return sorted(
        (f.name.partition(":")[2], f.context_id, _context(f.context.start, f.context.end, f.context.dimensions),
         f.unit_id, f.decimals, f.is_nil, (f.text or "").strip())
        for f in facts
    )  # fmt: skip


def _context(start: Any, end: Any, dimensions: Any) -> str:
    named = {axis: each if isinstance(each, str) else each["value"] for axis, each in (dimensions or {}).items()}
    return f"{start or ''}/{end} {sorted(named.items())}"


# --- edgartools


def _edgartools(content: bytes, file: Path) -> Any:
    from edgar.xbrl.parsers.instance import InstanceParser

    parser = InstanceParser({}, {}, {}, {}, {}, {}, [], {})
    parser.parse_instance_content(content)
    return parser


def _told_by_edgartools(parser: Any) -> list[Told]:
    told = []
    for fact in parser.facts.values():
        context = parser.contexts[fact.context_ref]
        period = context.period
        end = period.get("endDate") or period.get("instant")
        name = fact.element_id.rpartition(":")[2].rpartition("_")[2]
        # It does not keep that a fact is nil: those are the ones without a value.
        is_nil = not fact.value
        where = _context(period.get("startDate"), end, context.dimensions)
        told.append((name, fact.context_ref, where, fact.unit_ref, fact.decimals, is_nil, (fact.value or "").strip()))
    return sorted(told, key=repr)


# --- Arelle

_controller: Any = None


def _arelle(content: bytes, file: Path) -> Any:
    global _controller
    from arelle import Cntlr, FileSource

    if _controller is None:
        _controller = Cntlr.Cntlr(logFileName="logToBuffer", hasGui=False)
        _controller.webCache.workOffline = True
        # Without the schemas: they are not here, and reading them would cost it far more.
        _controller.modelManager.skipDTS = True
    model = _controller.modelManager.load(FileSource.openFileSource(str(file), _controller))
    facts = [(f, f.value, f.contextID, f.unitID, f.decimals, f.isNil, f.context.endDatetime) for f in model.facts]
    return model, facts


def _told_by_arelle(loaded: Any) -> list[Told]:
    from datetime import timedelta

    model, facts = loaded
    told = []
    for fact, value, context_id, unit_id, decimals, is_nil, end in facts:
        start = fact.context.startDatetime if fact.context.isStartEndPeriod else None
        dimensions = {
            str(axis): str(each.memberQname or each.typedMember.stringValue)
            for axis, each in fact.context.qnameDims.items()
        }
        where = _context(start and start.date(), (end - timedelta(days=1)).date(), dimensions)
        told.append(
            (fact.qname.localName, context_id, where, unit_id, decimals, is_nil, "" if is_nil else value.strip())
        )
    model.close()
    return sorted(told, key=repr)


# --- lxml, streaming


def _lxml(content: bytes, file: Path) -> Any:
    from lxml import etree

    instance, xsi = "{http://www.xbrl.org/2003/instance}", "{http://www.w3.org/2001/XMLSchema-instance}nil"
    contexts, facts = {}, []
    for _, element in etree.iterparse(io.BytesIO(content), events=("end",), huge_tree=True):
        get = element.get
        if (context := get("contextRef")) is not None:
            name = element.tag.rpartition("}")[2]
            facts.append((name, context, get("unitRef"), get("decimals"), get(xsi) == "true", element.text or ""))
        elif element.tag == f"{instance}context":
            contexts[get("id")] = (
                element.findtext(f".//{instance}startDate"),
                element.findtext(f".//{instance}endDate") or element.findtext(f".//{instance}instant"),
                {
                    e.get("dimension"): "".join(e.itertext()).strip()
                    for e in element.iter("{http://xbrl.org/2006/xbrldi}*")
                },
            )
        elif element.getparent() is not None and element.getparent().getparent() is not None:
            continue
        element.clear()
    return contexts, facts


def _told_by_lxml(read: Any) -> list[Told]:
    contexts, facts = read
    told = [
        (name, at, _context(*contexts[at]), unit, decimals, nil, text.strip())
        for name, at, unit, decimals, nil, text in facts
    ]
    return sorted(told, key=repr)


OURS = Reader("ours", _ours, _told_by_us)
OTHERS = (
    Reader("edgartools", _edgartools, _told_by_edgartools),
    Reader("Arelle", _arelle, _told_by_arelle),
    Reader("lxml, streaming", _lxml, _told_by_lxml),
)


def check_equal(content: bytes, file: Path) -> int:
    """Insist that every reader gives the same facts; return how many."""
    expected = sorted(OURS.told(OURS.read(content, file)), key=repr)
    for reader in OTHERS:
        found = reader.told(reader.read(content, file))
        assert len(found) == len(expected), f"{reader.name}: {len(found)} facts, not {len(expected)}"
        for theirs, own in zip(found, expected, strict=True):
            # Who keeps blanks between lines of a text, and who does not, is no difference here.
            assert _spaced(theirs) == _spaced(own), reader.name
    return len(expected)


def _spaced(told: Told) -> tuple[Any, ...]:
    return (*told[:-1], " ".join(told[-1].split()))


def measure(name: str, content: bytes, rounds: int) -> list[str]:
    """Measure one instance in every way."""
    with tempfile.TemporaryDirectory(prefix="daybook-bench-") as home:
        file = Path(home) / "example_htm.xml"
        file.write_bytes(content)
        count = check_equal(content, file)

        def run(reader: Reader) -> Callable[[], Cost]:
            def once() -> Cost:
                with spending(lambda: 0.0) as spent:
                    read = reader.read(content, file)
                if reader.name == "Arelle":
                    read[0].close()
                return spent.cost

            return once

        taken = interleaved({reader.name: run(reader) for reader in (OURS, *OTHERS)}, rounds)
    lines = [f"{name}: {count} facts, {len(content) / 1e6:.2f} MB"]
    for reader, costs in taken.items():
        best = sorted(cost.cpu for cost in costs)[len(costs) // 2]
        lines.append(f"  {reader:44}{count / best:12,.0f} facts a CPU second")
    faster = min(("edgartools", "Arelle"), key=lambda other: sum(cost.cpu for cost in taken[other]))
    lines.append(
        judge(Judged(f"XBRL, {name}: {faster} ÷ ours", tuple(ratios(taken[faster], taken["ours"])), floor=1.3, aim=AIM))
    )
    return lines


def measure_peak() -> list[str]:
    """Measure the memory of one process that reads an instance of a hundred thousand facts."""
    with tempfile.TemporaryDirectory(prefix="daybook-bench-") as home:
        file = Path(home) / "example_htm.xml"
        file.write_bytes(generated(100_000, 300))
        command = [sys.executable, str(Path(__file__).resolve()), "--peak", str(file)]
        peak = float(
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout.split()[-1]
        )
    return [judge(Judged("XBRL, 100,000 facts: peak of a process", (peak,), unit="MB", floor=512, less=True))]


def peak(file: Path) -> float:
    """The peak memory of this process, in megabytes, after reading an instance as the stream does."""
    with file.open("rb") as text:
        count = sum(1 for _ in Instance(iter(partial(text.read, 1 << 18), b""), "utf-8").facts())
    assert count == 100_000
    return most_held()


def at_home(home: str) -> None:
    """Let the others keep what they keep in a folder of their own."""
    os.environ.update(HOME=home, XDG_CONFIG_HOME=home, EDGAR_LOCAL_DATA_DIR=home)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What reading XBRL instances costs.")
    parser.add_argument("--rounds", type=int, default=5, help="how often each way is run and counted")
    parser.add_argument(
        "--instance", type=Path, nargs="*", default=[], help="instances to read beside the generated ones"
    )
    parser.add_argument("--peak", type=Path, help="print the peak memory of reading this in megabytes and end")
    options = parser.parse_args()
    if options.peak:
        print(peak(options.peak))
        return
    with tempfile.TemporaryDirectory(prefix="daybook-bench-") as home:
        at_home(home)
        for name, facts, words in SIZES:
            print("\n".join(measure(name, generated(facts, words), options.rounds)), flush=True)
        for file in options.instance:
            print("\n".join(measure(file.name, file.read_bytes(), options.rounds)), flush=True)
    print("\n".join([*measure_peak(), "", *summary()]))


if __name__ == "__main__":
    main()
