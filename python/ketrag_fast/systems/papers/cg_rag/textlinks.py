"""Find the links of a text to other documents and within itself; other modules resolve them.

Markdown (inline, by reference, wiki), HTML anchors, reStructuredText, paths of files, DOIs and arXiv ids.
The syntax of Markdown counts in Markdown and plain text only, and code in Markdown is ignored. Links of web
pages come from their metadata, because a reader has made plain text of them. Every pattern takes time in
proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath, splitext
from typing import Final, Literal
from urllib.parse import unquote

from ketrag_fast.readers.file_types import BY_SUFFIX
from ketrag_fast.records import dataclass

Kind = Literal["path", "wiki", "doc", "ref", "outer", "mention", "key"]


@dataclass(frozen=True, slots=True)
class Link:
    """A link: its target, the fragment in the target (after `#`), and its offset in the text."""

    kind: Kind
    target: str
    fragment: str
    at: int


MARKDOWN: Final = (".md", ".markdown", ".mdown")
RST: Final = (".rst",)
HTML: Final = (".html", ".htm", ".xhtml")
_MARKED: Final = ("markdown", "text", None)
"""Kinds of documents (None: not from a file) in which the syntax of Markdown and wikis is a link."""
_SUFFIXES: Final = (".md", ".markdown", ".rst", ".txt", ".html", ".htm", ".xhtml")
_INDEXES: Final = ("README.md", "index.md", "index.rst", "index.html", "index.htm", "_index.md")
_NO_DOCUMENT: Final = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|ico|pdf|zip|gz|css|js|json|ya?ml|toml|py|rs|c|h|sh|ipynb|mp4|bin)$", re.I
)
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,20}:")
_ITEM: Final = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]")
_LONGEST_LABEL: Final = 500
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_SPAN: Final = re.compile(r"(?<!`)(`{1,3})(?!`)[^`\n]{1,1000}\1(?!`)")
_INLINE: Final = re.compile(
    r"\]\(\s*(<[^<>\n]{0,2000}>|[^()\s]{1,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,200})*)"
)
_DEFINED: Final = re.compile(
    r"^ {0,3}\[[^\[\]^][^\[\]\n]{0,200}\]:[ \t]+(<[^<>\n]{0,2000}>|\S{1,2000})", re.M
)
_WIKI: Final = re.compile(r"\[\[([^\[\]|#\n]{0,300})(?:#([^\[\]|\n]{0,300}))?(?:\|[^\[\]\n]{0,300})?\]\]")
_ANCHOR: Final = re.compile(
    r"<a\s[^<>]{0,2000}?href\s*=\s*(?:\"([^\"]{0,2000})\"|'([^']{0,2000})'|([^\s>\"']{1,2000}))", re.I
)
_RST_LINK: Final = re.compile(r"`[^`<>]{0,500}<([^`<>\n]{1,1000})>`_")
_RST_ROLE: Final = re.compile(r":(doc|ref|numref):`(?:[^`<>]{0,500}<)?([^`<>]{1,500})>?`")
_RST_TARGET: Final = re.compile(r"^\.\. _[^:\n]{1,200}:[ \t]+(\S{1,2000})[ \t]*$", re.M)
_PATH: Final = re.compile(
    r"(?<![\w/.:#(-])(?:\.{1,2}/){0,8}(?:[\w.-]{1,200}/){0,20}[\w.-]{1,200}\.(?:md|markdown|rst|txt|html?)\b(?!/)"
)
_OUTER: Final = re.compile(
    r"\b(?:https?://)?(?:(?:dx\.)?doi\.org/|doi:\s?)10\.\d{4,9}/[^\s<>\"'\])}]{1,300}"
    r"|\b(?:https?://)?(?:www\.)?arxiv\.org/(?:abs|pdf)/[\w./-]{5,60}"
    r"|\barxiv:\s?\d{4}\.\d{4,5}(?:v\d+)?|\bPMID:?\s?\d{1,9}",
    re.I,
)
_WEB: Final = re.compile(r"https?://[^\s<>\"'\])}]{1,500}", re.I)
_CITE: Final = re.compile(r"\\[cC]ite[a-zA-Z]{0,12}\*?(?:\[[^\[\]]{0,200}\]){0,2}\{([^{}]{1,2000})\}")
_PANDOC: Final = re.compile(r"(?<![\w.])-?@(\{[^{}\s]{1,200}\}|[A-Za-z0-9_][\w:.#$%&+?<>~/-]{0,200})")


def links(name: str, text: str, *, keys: bool = False) -> Iterator[Link]:
    """Yield the links of a document. With `keys` also citation keys of a bibliography."""
    suffix = suffix_of(name)
    plain = (
        without_code(text, indented=suffix in MARKDOWN) if suffix in MARKDOWN or _has_fence(text) else text
    )
    if suffix in MARKDOWN and "`" in plain:
        plain = _SPAN.sub(lambda found: " " * len(found[0]), plain)
    if BY_SUFFIX.get(suffix) in _MARKED:
        yield from _marked(plain)
    if "href" in plain or "HREF" in plain:
        yield from _targets(_ANCHOR.finditer(plain))
    if suffix in RST or ":`" in plain:
        for found in _RST_ROLE.finditer(plain):
            target = found[2].strip()
            yield Link("doc" if found[1] == "doc" else "ref", target, "", found.start())
    if suffix in RST:
        yield from _targets(_RST_LINK.finditer(plain))
        yield from _targets(_RST_TARGET.finditer(plain))
    small = plain.lower()
    for pattern, marks in ((_OUTER, ("doi", "arxiv", "pmid")), (_WEB, ("http",))):
        if any(mark in small for mark in marks):
            yield from (Link("outer", f[0].rstrip(".,;:"), "", f.start()) for f in pattern.finditer(plain))
    if any(end in text for end in (".md", ".rst", ".txt", ".htm", ".markdown")):
        yield from (Link("mention", found[0], "", found.start()) for found in _PATH.finditer(text))
    if keys:
        yield from _keys(plain)


def given_links(targets: object) -> Iterator[Link]:
    """Yield the links in the field `links` of metadata: a list of targets as a page writes them."""
    if isinstance(targets, (list, tuple)):
        for target in targets:
            if isinstance(target, str) and (link := _link(target, 0)) is not None:
                yield link


def suffix_of(name: str) -> str:
    """Return the file suffix of a document id in lower case, ignoring a final `.gz`."""
    plain = name.lower()
    return splitext(plain[: -len(".gz")] if plain.endswith(".gz") else plain)[1]


def _marked(text: str) -> Iterator[Link]:
    """Yield the links of Markdown and wikis."""
    if "](" in text:
        yield from _targets(found for found in _INLINE.finditer(text) if not _is_negated(text, found.start()))
    if "]:" in text:
        yield from _targets(_DEFINED.finditer(text))
    if "[[" in text:
        for found in _WIKI.finditer(text):
            target = found[1]
            if _is_wiki_name(target):
                yield Link("wiki", target.strip(), (found[2] or "").strip(), found.start())


def _is_negated(text: str, end: int) -> bool:
    """Return whether the bracket that ends here began with `[^`: a footnote, or characters in a pattern."""
    start = text.rfind("[", max(end - _LONGEST_LABEL, 0), end)
    return text.startswith("[^", start) if start >= 0 else False


def _is_wiki_name(target: str) -> bool:
    """Return whether `[[target]]` is a wiki link, and not a condition, a class of characters or a matrix."""
    if not target:
        return True
    if target[0].isspace() or target[0] in "-!$:\"'" or any(mark in target for mark in '=<>${}"\\*^'):
        return False
    return any(map(str.isalpha, target)) or target.strip().isdecimal()


def _has_fence(text: str) -> bool:
    return "```" in text or "~~~" in text


def _targets(matches: Iterator[re.Match[str]]) -> Iterator[Link]:
    for found in matches:
        target = next(group for group in found.groups() if group is not None).strip("<>").strip()
        if (link := _link(target, found.start())) is not None:
            yield link


def _link(target: str, at: int) -> Link | None:
    """Return the link to a path or a web address; None for other schemes, such as `mailto:`."""
    path, _, fragment = target.partition("#")
    if _SCHEME.match(path):
        return Link("outer", target, fragment, at) if path.lower().startswith("http") else None
    return Link("path", unquote(path.partition("?")[0]), unquote(fragment), at)


def _keys(text: str) -> Iterator[Link]:
    for found in _CITE.finditer(text):
        for key in found[1].split(","):
            if key.strip() and key.strip() != "*":
                yield Link("key", key.strip(), "", found.start())
    if "@" in text:
        for found in _PANDOC.finditer(text):
            yield Link("key", found[1].strip("{}").rstrip(".,;:"), "", found.start())


def without_code(text: str, *, indented: bool = False) -> str:
    """Return the text with fenced code replaced by spaces, and with `indented` also indented code."""
    out, fence = [], ""
    blank, listed = True, False
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        is_code = bool(fence) or mark is not None
        if mark and (not fence or (mark[1].startswith(fence) and not line.strip(" \r\n`~"))):
            fence = "" if fence else mark[1]
        elif indented and not fence:
            deep = line.startswith(("    ", "\t"))
            is_code = deep and blank and not listed
            if line.strip():  # indented text below a list item belongs to the item
                listed = _ITEM.match(line) is not None or (listed and line[:1] in " \t")
                blank = is_code
            else:
                blank = True
        out.append(" " * (len(line) - 1) + line[-1] if is_code else line)
    return "".join(out)


def paths(name: str, target: str) -> list[str] | None:
    """Return the ids that a relative path in a document may mean; None if it leaves the source."""
    base = "" if target.startswith("/") else dirname(name)
    path = normpath(join(base, target.lstrip("/") if not base else target))
    if path == ".." or path.startswith("../"):
        return None
    stem, suffix = splitext(path)
    found = [path]
    if suffix.lower() in HTML:  # links name the published page; its source is indexed
        found += [stem + other for other in _SUFFIXES if other != suffix]
    elif suffix.lower() not in _SUFFIXES:
        found += [path + other for other in _SUFFIXES]
        found += [join(path, other) if path != "." else other for other in _INDEXES]
    return [*found, *(f"{one}.gz" for one in found)] if name.endswith(".gz") else found


def is_document(target: str) -> bool:
    """Return whether a path may be a document; images and code are not."""
    return _NO_DOCUMENT.search(target) is None


def counts_unresolved(name: str) -> bool:
    """Return whether link syntax counts in this document; in plain text it may be a formula."""
    return suffix_of(name) in (*MARKDOWN, *RST, *HTML)


def is_plain_text(name: str) -> bool:
    """Return whether a document is a plain text, where an unresolved `[[x]]` is not reported."""
    suffix = suffix_of(name)
    return bool(suffix) and BY_SUFFIX.get(suffix, "text") == "text"
