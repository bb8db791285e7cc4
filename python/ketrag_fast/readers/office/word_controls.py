"""Form fields and content controls of Word: what a person entered, chose or checked."""

from __future__ import annotations

from typing import Final

_OFF: Final = ("0", "false", "off")
_LONGEST_LABEL: Final = 60


class FormField:
    """Receives the elements inside `ffData`: the choice of a list, or whether a box is checked."""

    def __init__(self) -> None:
        self._kind = ""
        self._checked: bool | None = None
        self._default = False
        self._entries: list[str] = []
        self._chosen = 0

    def start(self, name: str, value: str) -> None:
        """Handle the start of an element."""
        if name in ("checkBox", "ddList"):
            self._kind = name
        elif name == "checked":
            self._checked = value not in _OFF
        elif name == "default" and self._kind == "checkBox":
            self._default = value not in _OFF
        elif name in ("result", "default") and value.isdigit() and len(value) < 6:
            self._chosen = int(value)
        elif name == "listEntry":
            self._entries.append(value)

    def written(self) -> str:
        """Return the entry or the box; "" for a text field, whose text is in the document."""
        if self._kind == "checkBox":
            return "[x]" if (self._default if self._checked is None else self._checked) else "[ ]"
        return self._entries[self._chosen] if self._chosen < len(self._entries) else ""


class Control:
    """A content control: its label, and whether it has only the text that asks for an entry.

    `begin` is the number of texts of the paragraph before it. Controls that show properties of the document,
    such as its title, have no label.
    """

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.is_empty = False
        self._alias = ""
        self._is_property = False

    def start(self, name: str, value: str) -> None:
        """Handle the start of an element inside `sdtPr`."""
        if name == "alias":
            self._alias = " ".join(value.split())
        elif name == "showingPlcHdr":
            self.is_empty = value not in _OFF
        elif name in ("dataBinding", "docPartObj", "checkbox"):
            self._is_property = True

    def label(self) -> str:
        """Return the label; "" if there is none."""
        return "" if self._is_property or len(self._alias) > _LONGEST_LABEL else self._alias
