"""Names and values as mathematics, for ``_repr_latex_``."""

from __future__ import annotations

from typing import Any

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%",
    "#": r"\#", "_": r"\_", "^": r"\^{}", "~": r"\~{}", "<": r"\lt{}", ">": r"\gt{}",
}  # fmt: skip


def words(text: Any) -> str:
    """Text inside a formula, every special character escaped.

    >>> words("shop_type")
    '\\\\text{shop\\\\_type}'
    """
    return "\\text{" + "".join(_ESCAPES.get(c, c) for c in str(text)) + "}"
