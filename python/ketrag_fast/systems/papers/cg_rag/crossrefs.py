"""References inside a document: to a label, an anchor, a heading, or a numbered section, figure, theorem.

A label that is defined twice refers to its first definition; the second is counted.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from ketrag_fast.readers.text_builder import without_closing
from ketrag_fast.records import dataclass, field
from ketrag_fast.systems.papers.cg_rag.textlinks import without_code

_LABEL: Final = re.compile(r"\\label\{([^{}\n]{1,200})\}")
_REF: Final = re.compile(r"\\(?:eq|auto|page|name|[cC])?ref\*?\{([^{}\n]{1,500})\}")
_ANCHOR: Final = re.compile(r"<[a-zA-Z][^<>]{0,500}?\s(?:id|name)\s*=\s*[\"']([^\"'<>\n]{1,200})[\"']")
_RST_LABEL: Final = re.compile(r"^\.\. _([^:\n]{1,200}):[ \t]*$", re.M)
_HEADING: Final = re.compile(r"^ {0,3}#{1,6}[ \t]([^\n]*)", re.M)
_LONGEST_TITLE: Final = 300
_UNDERLINED: Final = re.compile(r"^([^\s].{0,200})\n([=\-~^\"'`#*+:.])\2{2,}[ \t]*$", re.M)
_WORDS: Final = (
    r"Sections?|Sec\.|§|Chapters?|Appendix|Figures?|Fig\.|Tables?|Tab\.|Equations?|Eq\.|Algorithms?|Theorems?"
    r"|Lemmas?|Propositions?|Corollary|Definitions?"
)
_STEMS: Final = (
    *("Section", "Sec.", "§", "Chapter", "Appendix", "Fig", "Tab", "Eq", "Algorithm", "Theorem", "Lemma"),
    *("Proposition", "Corollary", "Definition"),
)
_RULES: Final = tuple(mark * 3 for mark in "=-~^\"'`#*+:.")
_NUMBER: Final = r"([A-Z]?\d+(?:\.\d+)*|[A-Z](?!\w))"
_NUMBERED: Final = re.compile(rf"(?<!\w)({_WORDS})[ ~\u00a0]{{0,2}}\(?{_NUMBER}\)?")
_CAPTION: Final = re.compile(
    rf"^[ \t>*_]{{0,8}}({_WORDS})[ ~\u00a0]{{0,2}}{_NUMBER}[*_]{{0,2}}[ \t]*(?:[.:)|]|\(|$)",
    re.M,
)
_NUMBERED_HEADING: Final = re.compile(
    r"^ {0,3}(?:#{1,6}[ \t]+([A-Z]?\d+(?:\.\d+)*|[A-Z](?=[.):]))|(\d+(?:\.\d+)*))[.):]?[ \t]+\S", re.M
)
_TAG: Final = re.compile(r"\\tag\{(\d+(?:\.\d+)*)\}")
_KINDS: Final = {
    "sec": "section",
    "§": "section",
    "chapter": "section",
    "appendix": "section",
    "fig": "figure",
    "tab": "table",
    "eq": "equation",
}


@dataclass(slots=True)
class References:
    """Pairs (referring unit, referenced unit) by position in the document, and unresolved references."""

    pairs: set[tuple[int, int]] = field(default_factory=set)
    unresolved: list[str] = field(default_factory=list)
    repeated: int = 0


class Labels:
    """The labels of a document and their offsets."""

    def __init__(self, text: str) -> None:
        self.text = without_code(text) if "```" in text or "~~~" in text else text
        self.at: dict[str, int] = {}
        self.repeated = 0
        for kind, name, at in _find_labels(self.text):
            key = f"{kind}:{name}"
            if key in self.at:
                self.repeated += kind in ("label", "rst")
            else:
                self.at[key] = at

    def place(self, fragment: str) -> int | None:
        """Return the offset of an anchor (the fragment after `#`); None if it does not exist."""
        for kind in ("anchor", "slug", "rst", "label"):
            found = self.at.get(f"{kind}:{fragment}")
            found = self.at.get(f"{kind}:{fragment.lower()}") if found is None else found
            if found is not None:
                return found
        return None


def references(text: str, starts: list[int], links: list[tuple[str, int]]) -> References:
    """Return the references between the units of a document, which begin at `starts` (code points).

    `links` are (fragment or label, offset) of links within the document.
    """
    labels, found = Labels(text), References()
    found.repeated = labels.repeated

    def unit(at: int) -> int:
        return max(bisect_right(starts, at) - 1, 0)

    for name, at in links:
        to = labels.place(name)
        if to is None:
            found.unresolved.append(f"#{name}")
        else:
            found.pairs.add((unit(at), unit(to)))
    if "ref" in labels.text:
        for match in _REF.finditer(labels.text):
            for name in match[1].split(","):
                to = labels.at.get(f"label:{name.strip()}")
                if to is None:
                    found.unresolved.append(name.strip())
                else:
                    found.pairs.add((unit(match.start()), unit(to)))
    for match in _NUMBERED.finditer(labels.text) if _has_words(labels.text) else ():
        to = labels.at.get(f"{_kind(match[1])}:{match[2]}")
        if to is not None:
            found.pairs.add((unit(match.start()), unit(to)))
        else:
            found.unresolved.append(match[0].strip())
    found.pairs = {pair for pair in found.pairs if pair[0] != pair[1]}
    return found


def _find_labels(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield (kind, name, offset) of labels, kind by kind."""
    if "\\label" in text:
        yield from (("label", m[1].strip(), m.start()) for m in _LABEL.finditer(text))
    if "<" in text:
        yield from (("anchor", m[1], m.start()) for m in _ANCHOR.finditer(text))
    if ".. _" in text:
        yield from (("rst", m[1].strip("`").strip(), m.start()) for m in _RST_LABEL.finditer(text))
    titles = list(_headings(text)) if "#" in text else []
    if any(rule in text for rule in _RULES):
        titles += [(m[1], m.start()) for m in _UNDERLINED.finditer(text)]
    seen: dict[str, int] = {}
    for title, at in sorted(titles, key=lambda pair: pair[1]):
        name = slug(title)
        again = seen.get(name, 0)
        seen[name] = again + 1
        yield "slug", f"{name}-{again}" if again else name, at
    if _has_words(text):
        yield from ((_kind(m[1]), m[2], m.start()) for m in _CAPTION.finditer(text))
    for m in _NUMBERED_HEADING.finditer(text):
        if m[1] is not None or _stands_apart(text, m.start()):
            yield "section", m[1] or m[2], m.start()
    if "\\tag" in text:
        yield from (("equation", m[1], m.start()) for m in _TAG.finditer(text))


def _headings(text: str) -> Iterator[tuple[str, int]]:
    for found in _HEADING.finditer(text):
        title = without_closing(found[1])
        if 0 < len(title) <= _LONGEST_TITLE:
            yield title, found.start()


def _has_words(text: str) -> bool:
    """Cheap test whether a text may contain a numbered reference."""
    return any(word in text for word in _STEMS)


def slug(title: str) -> str:
    """Return the anchor of a heading: lower case, `-` for spaces, no punctuation."""
    plain = re.sub(r"[`*_]|\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def _kind(word: str) -> str:
    plain = word.lower().rstrip(".")
    plain = plain[:-1] if plain.endswith("s") and plain != "§" else plain
    return _KINDS.get(plain, plain)


def _stands_apart(text: str, start: int) -> bool:
    """Return whether a line that begins with a number is a heading: short, not a sentence, with a blank line
    above and a blank line or a rule below."""
    end = text.find("\n", start)
    line = text[start : len(text) if end < 0 else end].strip()
    if len(line) > 80 or line.endswith((".", ",", ";", ":")) or "|" in line:
        return False
    above = text[start - 2 : start] == "\n\n" if start > 1 else True
    rest = text[end + 1 : end + 200].split("\n", 1)[0].strip() if end >= 0 else ""
    ruled = len(rest) > 2 and len(set(rest)) == 1 and not rest[0].isalnum()
    return ruled or (above and not rest)


def rst_labels(text: str) -> Iterator[str]:
    """Return the labels that reStructuredText in other documents can refer to, in lower case."""
    return (match[1].strip("`").strip().lower() for match in _RST_LABEL.finditer(text))


def starts_of(spans: list[list[int]]) -> list[int]:
    """Return offsets that assign each position of a document to the first unit that contains it.

    Units may overlap at their ends.
    """
    if not spans:
        return []
    return [0] + [max(before[1], own[0]) for before, own in pairwise(spans)]
