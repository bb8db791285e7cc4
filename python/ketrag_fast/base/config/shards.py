"""Shards: subsets of the documents, selected by the hash of the document id.

The selection depends only on the id, so N shards over the same sources together hold each document once.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from ketrag_fast.errors import ConfigError

_MOST = 65_536
_FORM = re.compile(r"\d{1,6}(,\d{1,6})*/\d{1,6}")


@dataclass(frozen=True, slots=True)
class Shards:
    """A selection of the shards 1 to `of`."""

    numbers: frozenset[int]
    of: int

    def holds(self, document: str) -> bool:
        """Return whether a document with this id belongs to one of the shards."""
        digest = hashlib.blake2b(document.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "little") % self.of + 1 in self.numbers

    @property
    def lacking(self) -> tuple[int, ...]:
        """The shards that are not included."""
        return tuple(number for number in range(1, self.of + 1) if number not in self.numbers)

    def text(self) -> str | None:
        """Return the value of the setting `shard`; None if all shards are included."""
        return f"{','.join(map(str, sorted(self.numbers)))}/{self.of}" if self.lacking else None


def shards_of(text: str | None) -> Shards | None:
    """Parse the setting `shard`: `2/8`, or several shards as `1,2/8`. None selects all documents.

    Raises ConfigError unless 0 < I <= N.
    """
    if text is None:
        return None
    plain = text.replace(" ", "")
    if _FORM.fullmatch(plain):
        numbers, _, of = plain.partition("/")
        found = Shards(frozenset(map(int, numbers.split(","))), int(of))
        if 0 < found.of <= _MOST and all(0 < number <= found.of for number in found.numbers):
            return found
    raise ConfigError(
        f"shard must be I/N with 0 < I <= N <= {_MOST:,}, got {text!r:.80}",
        hint="the first of four is 1/4; the other three are 2/4, 3/4 and 4/4",
    )
