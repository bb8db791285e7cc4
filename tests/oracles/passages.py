"""A plain version of the chunker: slow and short. Texts are ASCII, so bytes are characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Span = tuple[int, int]
Block = tuple[str, Span, int, Span, Span]
"""Kind, span, number of the block around it, what introduces it, and its header."""
Passage = tuple[Span, str, str]
"""Span, the context before it, and what closes its code."""
Atom = tuple[Span, int, bool, tuple[str, ...]]
"""A span that is not cut, its block, whether it stays with what follows, and the definitions around it."""
NONE = 2**32 - 1


class TooLong(Exception):
    """A sentence, row or line does not fit: it is cut by tokens, which this version does not do."""


def passages(
    text: str,
    blocks: Sequence[Block],
    sentences: Callable[[str], Sequence[Span]],
    most: int,
    count: Callable[[str], int],
) -> list[Passage]:
    """Cut a text with these blocks. Raises TooLong."""
    return _Chunker(text, blocks, sentences, most, count).run()


class _Chunker:
    def __init__(
        self,
        text: str,
        blocks: Sequence[Block],
        sentences: Callable[[str], Sequence[Span]],
        most: int,
        count: Callable[[str], int],
    ) -> None:
        self.text, self.blocks, self.sentences, self.most, self.count = text, blocks, sentences, most, count
        self.atoms: list[Atom] = []

    def run(self) -> list[Passage]:
        for number, block in enumerate(self.blocks):
            if block[2] == NONE:
                self.add(number, self.most)
        groups = self.joined(self.balanced(self.filled()))
        return [(self.span(group), self.before(group[0]), self.after(group[-1])) for group in groups]

    def size(self, start: int, end: int) -> int:
        return self.count(self.text[start:end])

    def span(self, group: Sequence[Atom]) -> Span:
        return group[0][0][0], group[-1][0][1]

    def inner(self, number: int) -> list[int]:
        return [at for at, block in enumerate(self.blocks) if block[2] == number]

    def add(self, number: int, room: int) -> None:
        kind, (start, end), *_ = self.blocks[number]
        if start == end:
            return
        if self.size(start, end) <= room:
            self.atoms.append(((start, end), number, kind in ("heading", "figure"), ()))
            return
        room = max(self.most - self.count(self.context(number, len(self.text) + 1, ())), 1)
        if inner := self.inner(number):
            for at in inner:
                self.add(at, room)
        elif kind == "table":
            for row in self.rows(number):
                is_header = row[0] < self.blocks[number][4][1]
                self.part(row, number, self.most if is_header else room, is_header)
        elif kind == "code":
            self.code(number, room)
        else:
            for a, b in self.sentences(self.text[start:end]):
                self.part((start + a, start + b), number, room)

    def part(
        self, span: Span, number: int, room: int, leads: bool = False, around: tuple[str, ...] = ()
    ) -> None:
        if self.size(*span) > room:
            raise TooLong
        self.atoms.append((span, number, leads, around))

    def rows(self, number: int) -> list[Span]:
        (start, end), head = self.blocks[number][1], self.blocks[number][4][1]
        found = [(start, head)] if head > start else []
        at = max(head, start)
        for line in self.text[at:end].splitlines(keepends=True):
            if line.strip():
                first = at + len(line) - len(line.lstrip(" \r\n\t"))
                first -= len(self.text[at:first]) - len(self.text[at:first].rstrip("\t"))
                found.append((first, at + len(line.rstrip())))
            at += len(line)
        return found

    def code(self, number: int, room: int) -> None:
        (start, end), head = self.blocks[number][1], self.blocks[number][4]
        is_fenced = head[0] < head[1]
        lines: list[tuple[int, int, int, bool]] = []  # start, end, indent, whether after a blank line
        at, blank = start, True
        for line in self.text[start:end].splitlines(keepends=True):
            if line.strip():
                bare = len(line) - len(line.lstrip())
                lines.append((at, at + len(line.rstrip()), bare, blank))
            blank = not line.strip()
            at += len(line)
        least = min((line[2] for line in lines[1:]), default=0)

        def begins(line: tuple[int, int, int, bool]) -> bool:
            return line[3] and line[2] <= least and not _closes(self.text[line[0] : line[1]].strip())

        def split(group: list[int], at_line: Callable[[tuple[int, int, int, bool]], bool]) -> list[list[int]]:
            parts: list[list[int]] = []
            for one in group:
                if parts and not at_line(lines[one]):
                    parts[-1].append(one)
                else:
                    parts.append([one])
            return parts

        def around(one: int) -> tuple[str, ...]:
            opened: list[int] = []
            for other in range(int(is_fenced), one + 1):
                while opened and lines[opened[-1]][2] >= lines[other][2]:
                    opened.pop()
                if other == one:
                    break
                bare = self.text[lines[other][0] : lines[other][1]].strip()
                if not _closes(bare) and not bare.startswith(("#", "*", "@", '"', "'", "//", "/*")):
                    opened.append(other)
            return tuple(self.text[lines[other][0] : lines[other][1]] for other in opened[-3:])

        def put(group: list[int]) -> None:
            span = lines[group[0]][0], lines[group[-1]][1]
            self.part(span, number, room, is_fenced and group == [0], around(group[0]))

        def fits(group: list[int]) -> bool:
            return self.size(lines[group[0]][0], lines[group[-1]][1]) <= room

        for definition in split(list(range(len(lines))), begins):
            if fits(definition):
                put(definition)
                continue
            for part in split(definition, lambda line: line[3]):
                for group in [part] if fits(part) else [[one] for one in part]:
                    put(group)

    def context(self, number: int, at: int, around: Sequence[str]) -> str:
        chain = [number]
        while self.blocks[chain[-1]][2] != NONE:
            chain.append(self.blocks[chain[-1]][2])
        if len(chain) > 4:
            chain = [*chain[:3], chain[-1]]
        lines: list[str] = []
        for one in reversed(chain):
            kind, span, _, lead, head = self.blocks[one]
            if lead[0] < lead[1] <= at:
                lines.append(self.text[slice(*lead)])
            if kind == "table" and head[0] < head[1] <= at:
                lines += self.text[slice(*head)].split("\n")
            if kind == "code" and at > span[0]:
                lines += [*([self.text[slice(*head)]] if head[0] < head[1] else []), *around]
        context = "".join(f"{line}\n" for line in lines)
        if self.count(context) > self.most // 2:
            raise TooLong
        return context

    def before(self, atom: Atom) -> str:
        return self.context(atom[1], atom[0][0], atom[3])

    def after(self, atom: Atom) -> str:
        kind, span, _, _, head = self.blocks[atom[1]]
        if kind != "code" or head[0] == head[1] or atom[0][1] >= span[1]:
            return ""
        fence = self.text[slice(*head)].lstrip("".join(set(self.text) - {"`", "~"}))
        return "\n" + fence[: len(fence) - len(fence.lstrip(fence[0]))]

    def filled(self) -> list[list[Atom]]:
        groups: list[list[Atom]] = []
        for atom in self.atoms:
            if not groups:
                groups.append([atom])
                continue
            group = groups[-1]
            if self.count(self.before(group[0])) + self.size(group[0][0][0], atom[0][1]) <= self.most:
                group.append(atom)
                continue
            moved: list[Atom] = []
            while group and group[-1][2]:
                moved.insert(0, group.pop())
            limit = self.most + self.most // 4
            if moved and self.size(moved[0][0][0], atom[0][1]) > limit:
                group += moved
                moved = []
            if group:
                groups.append([*moved, atom])
            else:
                group += [*moved, atom]
        return groups

    def joined(self, groups: list[list[Atom]]) -> list[list[Atom]]:
        found: list[list[Atom]] = []
        size = 0
        for group in groups:
            own = self.size(*self.span(group))
            if found and min(own, size) < self.most // 4:
                both = self.count(self.before(found[-1][0])) + self.size(found[-1][0][0][0], group[-1][0][1])
                if both <= self.most + self.most // 4:
                    found[-1] += group
                    size = both
                    continue
            found.append(group)
            size = own
        return found

    def balanced(self, groups: list[list[Atom]]) -> list[list[Atom]]:
        if len(groups) < 2 or self.size(*self.span(groups[-1])) >= self.most // 2:
            return groups
        first, last = groups[-2:]
        block = last[0][1]
        if first[-1][1] != block or self.before(last[0]):
            return groups
        while len(first) > 1 and first[-1][1] == block:
            longer = [first[-1], *last]
            size = self.size(*self.span(longer))
            if size > self.most or size >= max(self.size(*self.span(first)), self.size(*self.span(last))):
                break
            first, last = first[:-1], longer
        return [*groups[:-2], first, last]


def _closes(line: str) -> bool:
    return line.startswith(("}", ")", "]", "`", "~", "end"))
