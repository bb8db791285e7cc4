"""The attachments of a mail, each with a name that no other one has."""

from __future__ import annotations


class Attachments:
    """The names and contents of attachments, in order. A name that appears again gets a number."""

    def __init__(self) -> None:
        self.items: list[tuple[str, bytes]] = []
        self.unread: list[str] = []
        """Parts that have no text, such as signatures."""
        self._numbers: dict[str, int] = {}

    def add(self, name: str, content: bytes) -> None:
        """Add an attachment with the name that `unused` returned, or with another one."""
        self._numbers.setdefault(name, 1)
        self.items.append((name, content))

    def unused(self, name: str) -> str:
        """Return a name, with a number if other attachments have it."""
        stem, dot, suffix = name.rpartition(".")
        unused = name
        while name and unused in self._numbers:
            self._numbers[name] += 1
            number = self._numbers[name]
            unused = f"{stem or suffix} ({number}){dot if stem else ''}{suffix if stem else ''}"
        return unused
