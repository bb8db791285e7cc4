"""Text in XML 1.0: escaped, and without the characters that no XML file can hold."""

from __future__ import annotations

import re
from typing import Final

REPLACED: Final = "\ufffd"
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPECIAL: Final = re.compile("[&<>\r\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_QUOTED: Final = str.maketrans({'"': "&quot;", "\n": "&#10;", "\t": "&#9;"})


def content(text: str) -> str:
    """Return the text as the content of an element.

    Characters that XML cannot hold become U+FFFD. A carriage return is escaped, because parsers would turn
    it into a line feed.

    Examples:
        >>> content("a < b & \\x00")
        'a &lt; b &amp; �'
    """
    if not _SPECIAL.search(text):
        return text
    text = _FORBIDDEN.sub(REPLACED, text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")


def attribute(text: str) -> str:
    """Return the text as the value of an attribute in double quotes; line breaks and tabs are kept.

    Examples:
        >>> attribute('say "a\\nb"')
        'say &quot;a&#10;b&quot;'
    """
    return content(text).translate(_QUOTED)
