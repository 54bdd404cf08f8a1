"""KRX's indices: of stocks, of derivatives, and of bonds.

Promises: values keep their decimals; what is missing of an index is null and never zero, whatever else its row has.
Never: a name is taken for an identity that lasts, as KRX gives indices no code and has renamed some.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.contract import Parsed, Unit
from include.sources.krx.rows import Form, Kind
from include.sources.krx.tables import BOND_INDICES, INDICES

PARSER_VERSION = 1

_PRICES: Mapping[str, Kind] = {
    "IDX_CLSS": "name",
    "IDX_NM": "name",
    "CLSPRC_IDX": "exact",
    "CMPPREVDD_IDX": "exact",
    "FLUC_RT": "exact",
    "OPNPRC_IDX": "exact",
    "HGPRC_IDX": "exact",
    "LWPRC_IDX": "exact",
}
_DERIVATIVES = Form(_PRICES)
_STOCKS = Form({**_PRICES, "ACC_TRDVOL": "whole", "ACC_TRDVAL": "whole", "MKTCAP": "whole"})

_BOND_VALUES = ("TOT_EARNG_IDX", "NETPRC_IDX", "ZERO_REINVST_IDX", "CALL_REINVST_IDX", "MKT_PRC_IDX")
_BONDS = Form(
    {
        "BND_IDX_GRP_NM": "name",
        **{f"{name}{ending}": "exact" for name in _BOND_VALUES for ending in ("", "_CMPPREVDD")},
        "AVG_DURATION": "exact",
        "AVG_CONVEXITY_PRC": "exact",
        "BND_IDX_AVG_YD": "exact",
    }
)


def parse(unit: Unit) -> Parsed:
    """Read one family of indices of a day.

    Raises:
        ParseError: see `Form.read`.
    """
    family, day = unit.key.partition("/")[0], unit.session_date
    if family == "BOND":
        return _BONDS.read(unit, BOND_INDICES, lambda name, *values: (day, name.strip(), *values))

    def make(group: str, name: str, close: Any, *more: Any) -> tuple[Any, ...]:
        # A price of zero is none: an index without an opening has no low of zero either.
        change, percent, *ohl = more[:5]
        counts = more[5:] or (None, None, None)
        return (
            day,
            family,
            group.strip(),
            name.strip(),
            close,
            change,
            percent,
            *(price or None for price in ohl),
            *counts,
        )

    return (_DERIVATIVES if family == "DERIVATIVES" else _STOCKS).read(unit, INDICES, make)
