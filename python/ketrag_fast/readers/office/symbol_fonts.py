"""Characters of the fonts Symbol and Wingdings, which documents store by their number in the font."""

from __future__ import annotations

from typing import Final

_GREEK: Final = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ"
_SMALL_GREEK: Final = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ"
_SYMBOL: Final = {
    **{0x41 + at: sign for at, sign in enumerate(_GREEK)},
    **{0x61 + at: sign for at, sign in enumerate(_SMALL_GREEK)},
    **{code: chr(code) for code in range(0x20, 0x40)},
    **dict(zip(range(0x5B, 0x60), "[∴]⊥_", strict=True)),
    **dict(zip(range(0x7B, 0x7F), "{|}∼", strict=True)),
    **dict(zip(range(0xA0, 0xB0), "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓", strict=True)),
    **dict(zip(range(0xB0, 0xBF), "°±″≥×∝∂•÷≠≡≈…⏐⎯", strict=True)),
    **dict(zip(range(0xC0, 0xD0), "ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉", strict=True)),
    **dict(zip(range(0xD0, 0xE0), "∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓", strict=True)),
    0x22: "∀",
    0x24: "∃",
    0x27: "∋",
    0x2A: "∗",
    0x2D: "−",
    0x40: "≅",
    0xE0: "◊",
    0xE1: "〈",
    0xF1: "〉",
    0xE5: "∑",
    0xF2: "∫",
}
"""The encoding of Adobe's font Symbol."""
_WINGDINGS: Final = {
    0x6C: "●",
    0x6E: "■",
    0x6F: "□",
    0x71: "❑",
    0x72: "❒",
    0x76: "❖",
    0xA7: "▪",
    0xA8: "◻",
    0x9F: "•",
    0xD8: "➢",
    0xDF: "←",
    0xE0: "→",
    0xE1: "↑",
    0xE2: "↓",
    0xF0: "⇨",
    0xFB: "✗",
    0xFC: "✓",
    0xFD: "☒",
    0xFE: "☑",
    0x4A: "☺",
    0x4C: "☹",
    0x28: "☎",
    0x2A: "✉",
}
_FONTS: Final = {"symbol": _SYMBOL, "wingdings": _WINGDINGS}


def symbol(font: str, code: int) -> str | None:
    """Return the character with a number in a font, None for fonts with the usual encodings.

    Documents write the number as it is, or in the private range from U+F000 on.

    >>> symbol("Symbol", 0xF06D), symbol("Wingdings", 0xFC), symbol("Arial", 0x6D)
    ('μ', '✓', None)
    """
    signs = _FONTS.get(font.strip().lower())
    if signs is None:
        return None
    return signs.get(code - 0xF000 if 0xF000 <= code < 0xF100 else code, "")
