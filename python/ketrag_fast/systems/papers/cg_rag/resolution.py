"""Documents by the names that citations give them: DOIs, arXiv and PubMed ids, keys, titles, files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from posixpath import basename, splitext
from typing import Any, Final
from unicodedata import normalize
from urllib.parse import unquote

_FIELDS: Final = {
    "doi": "doi",
    "arxiv": "arxiv",
    "arxiv_id": "arxiv",
    "arxivid": "arxiv",
    "pmid": "pubmed",
    "pubmed": "pubmed",
    "pubmed_id": "pubmed",
    "pmcid": "pmc",
    "pmc": "pmc",
}
_OWN_KEYS: Final = ("key", "citekey", "citation-key", "citation_key", "bibkey")
_MARKS: Final = re.compile(r"[;|\n\t]+")
_SPACES: Final = re.compile(r"[,\s]+")


class Library:
    """All documents by the names that citations may use.

    A name of several documents means the first of them.
    """

    def __init__(
        self, ids: Sequence[str], titles: Sequence[str], metadata: Sequence[Mapping[str, Any]]
    ) -> None:
        self._ids, self._titles = ids, titles
        self._by_id = {name: number for number, name in enumerate(ids)}
        self._by_key: dict[str, int] = {}
        self.same: dict[int, int] = {}
        """Documents with the DOI or similar id of an earlier one, mapped to that one."""
        for number, (name, about) in enumerate(zip(ids, metadata, strict=True)):
            for key in dict.fromkeys(_keys(name, about)):
                first = self._by_key.setdefault(key, number)
                if first != number and not key.startswith("key:"):
                    self.same.setdefault(number, first)

    def __len__(self) -> int:
        return len(self._ids)

    def find(self, text: str) -> int | None:
        """Return the document of a citation: by id, by an outer key, or by id ignoring case."""
        found = self._by_id.get(text)
        if found is None:
            plain = text.strip()
            key = outer_key(plain)
            found = self._by_id.get(plain)
            found = self._by_key.get(key) if found is None and key is not None else found
            found = self._by_key.get(f"key:{plain}") if found is None else found
            found = self._by_key.get(f"url:{plain.rstrip('/').lower()}") if found is None else found
            found = self._by_folded_id.get(fold(plain)) if found is None else found
        return found

    def find_outer(self, text: str) -> int | None:
        """Return the document of a DOI, an arXiv or PubMed id, or a web address."""
        key = outer_key(text)
        found = self._by_key.get(key) if key is not None else None
        return self._by_key.get(f"url:{text.strip().rstrip('/').lower()}") if found is None else found

    def find_title(self, title: str) -> int | None:
        """Return the first document of a title, ignoring case and punctuation."""
        return self._by_title.get(fold_title(title))

    def find_path(self, path: str) -> int | None:
        """Return the document of a path within its source, ignoring case."""
        found = self._by_id.get(path)
        return self._by_folded_id.get(fold(path)) if found is None else found

    def find_name(self, name: str) -> int | None:
        """Return the document of a wiki name: file name without suffix, or title."""
        found = self.find_path(name)
        plain = fold_title(name.replace("_", " ").replace("-", " "))
        found = self._by_stem.get(plain) if found is None else found
        return self._by_title.get(plain) if found is None else found

    def know(self, key: str, document: int) -> None:
        """Add a bibliography key; all other names take precedence."""
        self._by_key.setdefault(f"key:{key}", document)

    @cached_property
    def _by_folded_id(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for number, name in enumerate(self._ids):
            found.setdefault(fold(name), number)
        return found

    @cached_property
    def _by_title(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for number, title in enumerate(self._titles):
            if plain := fold_title(title):
                found.setdefault(plain, number)
        return found

    @cached_property
    def _by_stem(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for number, name in enumerate(self._ids):
            stem = splitext(basename(name))[0].replace("_", " ").replace("-", " ")
            if plain := fold_title(stem):
                found.setdefault(plain, number)
        return found


def cited_documents(metadata: Mapping[str, Any], library: Library) -> Iterator[tuple[str, int | None]]:
    """Yield (citation as written, its document or None) for each citation in the field `cites`.

    A list of ids, DOIs, arXiv or PubMed ids and keys, or one text with `;`, `|`, commas or spaces between.
    """
    given = metadata.get("cites")
    if given is None or given == "":
        return
    for entry in given if isinstance(given, (list, tuple)) else [given]:
        if isinstance(entry, bool) or not isinstance(entry, (str, int)):
            yield str(entry)[:200], None
            continue
        text = str(entry)
        found = library.find(text)
        if found is not None or isinstance(given, (list, tuple)) or not text.strip():
            if text.strip():
                yield text, found
            continue
        for part in _MARKS.split(text):
            yield from _parts(part.strip(), library)


def _parts(text: str, library: Library) -> Iterator[tuple[str, int | None]]:
    """Resolve a part between separators: one name, or several with commas or spaces between."""
    found = library.find(text) if text else None
    several = [part for part in _SPACES.split(text) if part]
    if found is not None or len(several) == 1:
        yield text, found
    else:
        yield from ((part, library.find(part)) for part in several)


def _keys(name: str, metadata: Mapping[str, Any]) -> Iterator[str]:
    """Return the outer keys of a document: ids, web address and bibliography key in its metadata."""
    if key := outer_key(name):
        yield key
    for field, value in metadata.items():
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            continue
        plain, text = field.lower(), str(value)
        if plain in _FIELDS and (key := key_of_kind(_FIELDS[plain], text)):
            yield key
        elif plain == "url" and text.strip():
            yield f"url:{text.strip().rstrip('/').lower()}"
            if key := outer_key(text):
                yield key
        elif plain in _OWN_KEYS and text.strip():
            yield f"key:{text.strip()}"


_DOI: Final = re.compile(
    r"(?:https?://)?(?:(?:dx\.|www\.)?doi\.org/|doi:\s*)?(10\.\d{4,9}/\S+)", re.IGNORECASE
)
_ARXIV: Final = re.compile(
    r"(?:(?:https?://)?(?:www\.|export\.)?arxiv\.org/(?:abs|pdf|html)/|arxiv:\s*)?"
    r"(\d{4}\.\d{4,5}|[a-z-]+(?:\.[a-z]{2})?/\d{7})(?:v\d+)?(?:\.pdf)?",
    re.IGNORECASE,
)
_PUBMED: Final = re.compile(
    r"(?:(?:https?://)?(?:www\.)?(?:pubmed\.ncbi\.nlm\.nih\.gov|ncbi\.nlm\.nih\.gov/pubmed)/|(?:pmid|pubmed):?\s*)"
    r"(\d{1,9})/?",
    re.IGNORECASE,
)
_PMC: Final = re.compile(
    r"(?:(?:https?://)?(?:www\.)?(?:pmc\.ncbi\.nlm\.nih\.gov|ncbi\.nlm\.nih\.gov/pmc)/articles/|pmcid:\s*)?"
    r"(PMC\d{1,9})/?",
    re.IGNORECASE,
)
_ARXIV_DOI: Final = "10.48550/arxiv."
_LONGEST = 2000  # longer texts are not names of documents
KINDS: Final = ("doi", "arxiv", "pubmed", "pmc")


def outer_key(text: str) -> str | None:
    """Return an identifier in one spelling, such as `doi:10.1145/1327452` or `arxiv:2005.11401`, or None.

    Prefixes, web addresses, case, arXiv versions and a trailing full stop are ignored.
    """
    plain = text.strip().rstrip(".,;").strip()
    if not plain or len(plain) > _LONGEST:
        return None
    if found := _DOI.fullmatch(plain):
        doi = unquote(found[1]).rstrip("/").lower()
        return f"arxiv:{_bare(doi[len(_ARXIV_DOI) :])}" if doi.startswith(_ARXIV_DOI) else f"doi:{doi}"
    if found := _ARXIV.fullmatch(plain):
        return f"arxiv:{found[1].lower()}"
    if found := _PUBMED.fullmatch(plain):
        return f"pubmed:{found[1]}"
    if found := _PMC.fullmatch(plain):
        return f"pmc:{found[1].lower()}"
    return None


def key_of_kind(kind: str, text: str) -> str | None:
    """Return the key of the value of a field (`doi`, `arxiv`, `pubmed`, `pmc`)."""
    plain = text.strip()
    if kind == "pubmed" and plain.isdecimal():
        return f"pubmed:{plain}"
    found = outer_key(plain)
    if found is not None:
        return found
    return f"{kind}:{plain.lower()}" if plain else None


def fold(text: str) -> str:
    """Return text in lower case and form NFC, because file systems and bibliographies differ in both."""
    return normalize("NFC", normalize("NFC", text).casefold())


def fold_title(text: str) -> str:
    """Return a title or name in lower case, letters and digits only, for comparison."""
    return " ".join(re.findall(r"\w+", fold(text)))


def _bare(arxiv: str) -> str:
    return re.sub(r"v\d+$", "", arxiv)
