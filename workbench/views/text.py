"""Text of users inside pages of ours: the one place where it is made harmless.

A name can come from anybody's file, and it ends up in HTML, inside scripts, in template literals and in Jinja
templates. `escape` writes every sign that means something in any of these as an HTML entity.
"""

from __future__ import annotations

import html
from typing import Any

_SIGNS = {ord(sign): f"&#{ord(sign)};" for sign in "`${}\\%"}
_CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127, 0x2028, 0x2029), " ")


def escape(value: Any) -> str:
    """A value as text that is shown as it is, and does nothing, wherever it is put.

    >>> escape("<img src=x onerror=alert(1)>")
    '&lt;img src=x onerror=alert(1)&gt;'
    >>> escape("`${x}` {{ y }}")
    '&#96;&#36;&#123;x&#125;&#96; &#123;&#123; y &#125;&#125;'
    """
    text = str(value).encode("utf-8", "replace").decode("utf-8")
    return html.escape(text, quote=True).translate(_SIGNS).translate(_CONTROLS)


def lines(value: Any) -> str:
    """A text of indented lines as blocks, which keep their indent where they wrap.

    >>> lines("✓ a < b\\n  ✗ c")
    '<div style="margin-left:0.0em">✓ a &lt; b</div><div style="margin-left:1.0em">✗ c</div>'
    """
    split = [(line, line.lstrip()) for line in str(value).splitlines()]
    return "".join(
        f'<div style="margin-left:{(len(line) - len(said)) / 2}em">{escape(said)}</div>' for line, said in split
    )


def number(value: float) -> str:
    """A number as people read it.

    >>> number(12345), number(0.123456), number(12.0)
    ('12,345', '0.1235', '12')
    """
    return f"{int(value):,}" if float(value).is_integer() else f"{value:,.4g}"


def plain(value: Any) -> str:
    r"""A value as text that plots show as it is: a dollar would begin mathematics.

    >>> plain("5 $ and `x`")
    '5 \\$ and `x`'
    """
    return str(value).encode("utf-8", "replace").decode("utf-8").replace("\\", "/").replace("$", r"\$")
