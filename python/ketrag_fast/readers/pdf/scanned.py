"""Recognise the text of scanned pages: a page is drawn as a picture, and Tesseract finds its words."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

from ketrag_fast.readers.ocr import RecognisedWord, recognise

_Word = tuple[float, float, float, float, str]
"""Left, top, right and bottom of a word in points, and its text."""
_DOTS: Final = 300
"""Dots per inch of the picture, the resolution that Tesseract's models were made for."""
_MOST_DOTS: Final = 40_000_000
"""Maximum number of dots of a picture; a larger page is drawn more coarsely."""


_SIZE: Final = 1.3
"""The size of letters, relative to the height of their ink."""


_BEARING: Final = 0.08
"""The space next to the ink of a letter, relative to its size."""


def recognise_page(page: Any, languages: str) -> list[tuple[float, list[_Word]]]:
    """Return the size of the letters and the words of each line of a page that is a picture.

    Raises DocumentError if Tesseract fails.
    """
    width, height = page.get_size()
    scale = min(_DOTS / 72, (_MOST_DOTS / max(width * height, 1.0)) ** 0.5)
    bitmap = page.render(scale=scale, grayscale=True)
    try:
        rows = memoryview(bitmap.buffer).cast("B")
        picture = b"".join(
            [
                b"P5 %d %d 255\n" % (bitmap.width, bitmap.height),
                *(rows[at * bitmap.stride :][: bitmap.width] for at in range(bitmap.height)),
            ]
        )
    finally:
        bitmap.close()
    words = recognise(picture, languages, round(72 * scale))
    lines: list[tuple[float, list[_Word]]] = []
    for _, group in groupby(words, key=lambda word: word.line):
        own = list(group)
        ink = max(word.bottom for word in own) - min(word.top for word in own)
        size = _SIZE * ink / scale
        lines.append((size, [_in_points(word, scale, _BEARING * size) for word in own]))
    return lines


def _in_points(word: RecognisedWord, scale: float, bearing: float) -> _Word:
    left, right = word.left / scale - bearing, word.right / scale + bearing
    return left, word.top / scale, right, word.bottom / scale, word.text
