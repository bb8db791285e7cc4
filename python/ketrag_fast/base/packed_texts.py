"""Lists of texts in the form that the core takes, without NumPy."""

from __future__ import annotations

from array import array
from collections.abc import Iterable


def packed_texts(texts: Iterable[str]) -> tuple[bytes, array[int]]:
    """Return texts as (UTF-8 blob, n + 1 offsets): text i is `blob[offsets[i]:offsets[i + 1]]`.

    Examples:
        >>> packed_texts(["Oslo", "Ålesund"])[1].tolist()
        [0, 4, 12]
    """
    blob, ends = bytearray(), array("Q", [0])
    for text in texts:
        blob += text.encode("utf-8")
        ends.append(len(blob))
    return bytes(blob), ends
