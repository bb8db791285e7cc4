"""Names of documents as citations write them: DOIs, arXiv and PubMed ids, and plain ids."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import normalize
from urllib.parse import unquote

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
