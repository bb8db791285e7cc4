"""A map of a repository: its folders, the files that the others use most, and what these define."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

from ketrag_fast.base.scopes import scope_mask
from ketrag_fast.query.definitions import NAME, defined_names
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.records import dataclass
from ketrag_fast.types.wording import counted

_FILES: Final = 20_000
"""Maximum number of files of code that are read, those in the fewest folders first."""
_DEFINERS: Final = 3
"""A name that more files define, such as `run`, says nothing about which of them is used."""
_DEFINITIONS: Final = 8
"""Maximum number of definitions that are shown of a file."""
_FOLDERS: Final = 0.3
"""Maximum share of the tokens for the folders."""


@dataclass(frozen=True, slots=True)
class OutlinedFile:
    """A file: how many other files use its definitions, and these with their lines, most used first."""

    document: str
    users: int
    definitions: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """A map of a repository.

    Attributes:
        folders: Each folder that has files, with their number, by path.
        files: The files of code, the most used ones first.
        unread: Number of files of code that were not read because there are too many.
    """

    folders: tuple[tuple[str, int], ...]
    files: tuple[OutlinedFile, ...]
    unread: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the command prints."""
        files = [
            {
                "document": file.document,
                "users": file.users,
                "definitions": [{"line": line, "name": name} for line, name in file.definitions],
            }
            for file in self.files
        ]
        folders = [{"folder": folder, "files": count} for folder, count in self.folders]
        return {"folders": folders, "files": files, "unread": self.unread}

    def text(self, tokens: int = 1_000, name: Callable[[str], str] = str) -> str:
        """Return the map in at most `tokens` tokens. `name` returns the printed path of a document."""
        from ketrag_fast.kernels import count_tokens

        folders = self._shown_folders(tokens)
        rows = [f"{folder}/ {counted(count, 'file')}" for folder, count in folders]
        heads = [f"{name(file.document)} ({_about(file)})" for file in self.files]
        lines = [*rows, *heads]
        sizes = [int(size) + 1 for size in count_tokens(lines)] if lines else []
        read = f"the first {len(self.files):,} of " if self.unread else ""
        code = counted(len(self.files) + self.unread, "file")
        end = f"[{read}{code} of code in {counted(len(self.folders), 'folder')}]"
        room = tokens - int(count_tokens([end])[0]) - 1
        shown = []
        for line, size in zip(lines, sizes, strict=True):
            if size > room:
                break
            room -= size
            shown.append(line)
        return "\n".join([*shown, end])

    def _shown_folders(self, tokens: int) -> Sequence[tuple[str, int]]:
        """Return the folders, as deep as they fit in their share of the tokens."""
        most = max(int(tokens * _FOLDERS) // 8, 1)
        depth = max((folder.count("/") + 1 for folder, _ in self.folders), default=1)
        while True:
            counts = Counter[str]()
            for folder, count in self.folders:
                counts["/".join(folder.split("/")[:depth])] += count
            if len(counts) <= most:
                return sorted(counts.items())
            if depth == 1:
                return sorted(sorted(counts.items(), key=lambda row: (-row[1], row[0]))[:most])
            depth -= 1


def _about(file: OutlinedFile) -> str:
    used = f"used by {counted(file.users, 'file')}" if file.users else "not used by name"
    names = ", ".join(f"{name}:{line}" for line, name in file.definitions[:_DEFINITIONS])
    return f"{used}; {names}" if names else used


def outline_of(opened: Opened, wanted: bytes | None, check: Callable[[], object]) -> Outline:
    """Return the map of the documents, all or those of a mask. `check` is called for each file and may raise.

    A definition counts by the number of other files, tests left out, that have its name; a name of small
    letters that is in most files is a common word. A file counts by the sum of the logarithms of these
    numbers.
    """
    texts = opened.texts
    numbers = [at for at in range(len(texts)) if wanted is None or wanted[at]]
    names = [texts.names[at] for at in numbers]
    folders = Counter(name.rpartition("/")[0] or "." for name in names)
    is_code = scope_mask("code", names)
    every = zip(numbers, names, is_code, strict=True)
    code = sorted((name.count("/"), name, number) for number, name, fits in every if fits)
    lines: dict[str, dict[str, int]] = {}
    users: dict[str, set[int]] = defaultdict(set)
    for at, (_, name, number) in enumerate(code[:_FILES]):
        check()
        text = texts.text(number)
        first = texts.core.first_line(number, text) or 1
        own: dict[str, int] = {}
        start, line = 0, first
        for offset, defined in defined_names(text):
            line += text.count("\n", start, offset)
            start = offset
            own.setdefault(defined, line)
        lines[name] = own
        for used in set(NAME.findall(text)):
            users[used].add(at)
    definers = Counter(defined for own in lines.values() for defined in own)
    rows = []
    for at, (_, name, _) in enumerate(code[:_FILES]):
        counts = {
            defined: len(users[defined] - {at})
            for defined in lines[name]
            if definers[defined] <= _DEFINERS and NAME.fullmatch(defined)
        }
        for defined in counts:
            if 2 * counts[defined] > len(lines) and defined.isalpha() and defined.islower():
                counts[defined] = 0
        order = sorted(counts, key=lambda defined: (-counts[defined], lines[name][defined], defined))
        using = set[int]().union(*(users[defined] for defined in counts)) - {at}
        score = math.fsum(sorted(math.log1p(count) for count in counts.values()))
        definitions = tuple((lines[name][defined], defined) for defined in order)
        rows.append((-round(score, 6), name, OutlinedFile(name, len(using), definitions)))
    files = tuple(file for _, _, file in sorted(rows, key=lambda row: row[:2]))
    return Outline(tuple(sorted(folders.items())), files, max(len(code) - _FILES, 0))
