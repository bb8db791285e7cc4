"""Headers of mails, read in time that is proportional to their length.

The standard parser takes quadratic time for many headers: 70 s for 180,000 addresses. It also takes 3 ms for
the headers of a usual mail, so headers in which it would change nothing are not given to it.
"""

from __future__ import annotations

import re
from email import policy
from email.header import decode_header, make_header
from email.message import EmailMessage, Message
from functools import lru_cache
from typing import Any, Final, cast

LONGEST: Final = 10_000
"""Characters of a header that are read."""
_LONGEST_OF_PART: Final = 1_000
"""Characters of a header that describes a part, such as `Content-Type`. The standard parser needs up to 4 ms
for 1,000, and quadratic time: 190 ms for 10,000."""
_SHORT: Final = 500
"""Longest header that the standard parser reads. For 10,000 characters of addresses it needs 1 s."""


class _ShortHeaders(policy.EmailPolicy):
    """The standard policy; a long header is cut between two words, and equal headers are parsed once."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """Return the name and the value of a header from its lines."""
        name, value = super().header_source_parse(sourcelines)
        most = _LONGEST_OF_PART if name.lower().startswith("content-") else LONGEST
        if len(value) <= most:
            return name, value
        whole, space, _ = value[:most].rpartition(" ")
        return name, whole if space else value[:most]

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """Return the parsed value of a header, which several functions ask for."""
        return _parsed_header(name, value) if isinstance(value, str) else value


@lru_cache(maxsize=256)
def _parsed_header(name: str, value: str) -> Any:
    return policy.default.header_fetch_parse(name, value)


POLICY: Final = cast("policy.EmailPolicy[EmailMessage]", _ShortHeaders())
"""The policy with which messages are parsed."""


_PRINTABLE: Final = re.compile(r"[\t\r\n -~]*")
_ATOMS: Final = r"[\w!#$%&'*+/=?^`{|}~-]+"
_MAILBOX: Final = rf"{_ATOMS}(?:\.{_ATOMS})*@{_ATOMS}(?:\.{_ATOMS})*"
_NAME: Final = rf'(?:{_ATOMS}(?: {_ATOMS})*|"[^\s"\\](?:[^"\\]*[^\s"\\])?")'
_ADDRESS: Final = rf"(?:{_MAILBOX}|{_NAME} <{_MAILBOX}>)"
_PLAIN: Final = {
    "subject": re.compile(".*"),
    "from": re.compile(rf"\A{_ADDRESS}(?:, {_ADDRESS})*", re.ASCII),
    "message-id": re.compile(rf"\A<{_MAILBOX}>", re.ASCII),
    "in-reply-to": re.compile(".*"),
}
"""Forms of printable headers that the standard parser returns unchanged, except for needless quotes."""
_PLAIN["to"] = _PLAIN["cc"] = _PLAIN["from"]
_NEEDLESS: Final = re.compile(r'"([^"()<>@,:;.\\\[\]]*)"(?= <)')
"""A quoted name without a character that needs quotes."""


def raw_headers(message: Message) -> dict[str, str]:
    """Return the headers of a message as they are written, by name in lower case; the first of each name."""
    found: dict[str, str] = {}
    for name, value in message.raw_items():
        found.setdefault(name.lower(), str(value))
    return found


def header_text(message: Message, name: str, raw: str) -> str:
    """Return the text of a header, on one line. Of a long one, only the encoded words are decoded.

    Args:
        message: the message.
        name: name of the header in lower case.
        raw: its value as it is written.
    """
    if len(raw) > _SHORT:
        return " ".join(str(make_header(decode_header(raw))).split())
    line = " ".join(raw.split())
    plain = _PLAIN.get(name)
    if plain is not None and "=?" not in line and _PRINTABLE.fullmatch(raw) and plain.fullmatch(line):
        return line if name not in ("from", "to", "cc") else _NEEDLESS.sub(r"\1", line)
    return " ".join(str(message.get(name, "")).split())
