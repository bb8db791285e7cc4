"""Formulas of Word (Office MathML) as one line of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ketrag_fast._core import formula_part, formula_text

_ROLES: Final = {
    "f": ("fraction", ("num", "den")),
    "sSup": ("power", ("e", "sup")),
    "sSub": ("index", ("e", "sub")),
    "sSubSup": ("index and power", ("e", "sub", "sup")),
    "limLow": ("index", ("e", "lim")),
    "limUpp": ("power", ("e", "lim")),
}
_CHARACTERS: Final = ("chr", "begChr", "endChr", "sepChr")


class _Open:
    __slots__ = ("characters", "children", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.children: list[tuple[str, str]] = []
        self.characters: dict[str, str] = {}

    def role(self, name: str) -> str:
        return "".join(text for own, text in self.children if own == name)

    def all(self, name: str) -> list[str]:
        return [text for own, text in self.children if own == name]


class WordFormula:
    """Receives the elements inside `oMath`."""

    def __init__(self) -> None:
        self._stack = [_Open("oMath")]

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""
        if name in _CHARACTERS and len(self._stack) > 1:
            self._stack[-2].characters[name] = attributes.get("val", "")
        self._stack.append(_Open(name))

    def text(self, text: str) -> None:
        """Handle text."""
        if self._stack[-1].name == "t":
            self._stack[-1].children.append(("", text))

    def end(self) -> None:
        """Handle the end of an element."""
        own = self._stack.pop()
        self._stack[-1].children.append((own.name, _written(own)))

    def written(self) -> str:
        """Return the formula."""
        return formula_text("".join(text for _, text in self._stack[0].children))


def _written(own: _Open) -> str:
    if own.name in _ROLES:
        kind, roles = _ROLES[own.name]
        return formula_part(kind, [own.role(role) for role in roles])
    match own.name:
        case "rad":
            return formula_part("root", [own.role("e"), own.role("deg")])
        case "nary":
            sign = own.characters.get("chr", "∫") or "∫"
            signed = formula_part("index and power", [sign, own.role("sub"), own.role("sup")])
            return f"{signed} {own.role('e')}"
        case "d":
            inner = (own.characters.get("sepChr") or "|").join(own.all("e"))
            return f"{own.characters.get('begChr', '(')}{inner}{own.characters.get('endChr', ')')}"
        case "acc":  # a combining character, a hat unless another one is chosen
            return own.role("e") + own.characters.get("chr", "\u0302")
        case "bar":
            return own.role("e") + "\u0305"
        case "sPre":
            return own.role("sub") + own.role("sup") + own.role("e")
        case "mr":
            return ", ".join(own.all("e"))
        case "m":
            return "; ".join(own.all("mr"))
        case "eqArr":
            return "; ".join(own.all("e"))
    return "" if own.name.endswith("Pr") else "".join(text for _, text in own.children)
