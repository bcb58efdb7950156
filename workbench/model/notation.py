"""Names and values as mathematics, for ``_repr_latex_``.

In upright math mode, not as ``\\text``: MathJax, which notebooks use, shows escapes inside ``\\text`` as written.
"""

from __future__ import annotations

from typing import Any

_ESCAPES = {
    "\\": "\\backslash ", "{": "\\{", "}": "\\}", "$": "\\$", "&": "\\&", "%": "\\%", "#": "\\#", "_": "\\_",
    "^": "\\wedge ", "~": "\\sim ", "<": "\\lt ", ">": "\\gt ", " ": "\\ ", "'": "\\text{'}",
    "τ": "\\tau ", "π": "\\pi ",
}  # fmt: skip


def words(text: Any) -> str:
    """Text inside a formula, every special character escaped.

    >>> print(words("shop_type"))
    \\mathrm{shop\\_type}
    """
    return "\\mathrm{" + "".join(_ESCAPES.get(c, c) for c in str(text)) + "}"
