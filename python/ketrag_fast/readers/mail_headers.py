"""Headers of mails, read in time that is proportional to their length.

The standard parser takes quadratic time for many headers: 70 s for 180,000 addresses.
"""

from __future__ import annotations

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


def header_text(message: Message, name: str) -> str:
    """Return the text of a header, on one line. Of a long one, only the encoded words are decoded."""
    raw = next((str(value) for own, value in message.raw_items() if own.lower() == name.lower()), "")
    text = str(message.get(name, "")) if len(raw) <= _SHORT else str(make_header(decode_header(raw)))
    return " ".join(text.split())
