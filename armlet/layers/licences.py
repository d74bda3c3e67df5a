"""Licences and texts in the form that BitBake takes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from armlet.spec.base import spdx_expression

_GENERIC = frozenset({"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "GPL-3.0-with-GCC-exception", "ISC"}) | {
    *("CC0-1.0", "MIT", "MPL-2.0", "Zlib", "GPL-2.0-only", "GPL-3.0-only", "LGPL-2.1-only"),
}
"""Those whose text OpenEmbedded has in every release since 2022; of others, the recipe names a text."""
_WITH = {"GPL-3.0-or-later-with-GCC-exception-3.1": "GPL-3.0-with-GCC-exception"}
_OTHER = "LicenseRef-armlet-other"
_OPERATORS = {"AND": "&", "OR": "|"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    expression: str
    texts: tuple[tuple[str, str], ...]
    """(licence, file): for ``NO_GENERIC_LICENSE``."""


def licence(spdx: str, text: str) -> Licence:
    """An SPDX expression for ``LICENSE``.

    Args:
        text: the file that stands for licences whose text OpenEmbedded may lack.
    """
    known = spdx_expression(spdx)
    if known is None:
        return Licence(expression=_OTHER, texts=((_OTHER, text),))
    words = re.sub(r" WITH (?=\S)", "-with-", known).replace("(", "( ").replace(")", " )").split()
    named = [_OPERATORS.get(word, _WITH.get(word, word)) for word in words]
    lacking = sorted({word for word in named if word not in _GENERIC and word not in "()&|"})
    expression = " ".join(named).replace("( ", "(").replace(" )", ")")
    return Licence(expression=expression, texts=tuple((word, text) for word in lacking))


def plain(text: str) -> str:
    """A line that BitBake takes as it is: it knows no way to write a quote or ``${`` for themselves."""
    return text.replace('"', "'").replace("\\", "/").replace("${", "$ {").replace("`", "'")
