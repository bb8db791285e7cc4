"""Citations between documents and references between units: metadata, links, texts, bibliographies."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from posixpath import basename
from typing import Any, Final

import numpy as np

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import BackendMissing, ConfigError, DocumentError
from ketrag_fast.kernels.text import pack
from ketrag_fast.readers.decode import decode
from ketrag_fast.records import dataclass, field
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.systems.papers.cg_rag import CgRagSettings
from ketrag_fast.systems.papers.cg_rag.crossrefs import references, rst_labels, starts_of
from ketrag_fast.systems.papers.cg_rag.resolution import Library, cited_documents, key_of_kind, outer_key
from ketrag_fast.systems.papers.cg_rag.textlinks import (
    Link,
    counts_unresolved,
    given_links,
    is_document,
    is_plain_text,
    links,
    paths,
)
from ketrag_fast.systems.shared.rows import csr_out, offsets_of, strings_out, unit_owners
from ketrag_fast.systems.spec.stage import Outputs, StageContext, StageInputs

GIVEN, LINKED, BY_KEY = 1, 2, 4
"""Sources of a citation, one bit each: metadata, a link in the text, a key of a bibliography."""
_STEP: Final = 256
_SHOWN: Final = 300
OUT_OF_SOURCE: Final = " (leads out of the source)"


@dataclass(slots=True)
class CitationsRead:
    """The citations read so far, by document number."""

    pairs: dict[tuple[int, int], int] = field(default_factory=dict)
    unresolved: dict[tuple[int, str], None] = field(default_factory=dict)
    references: list[tuple[int, int]] = field(default_factory=list)
    lost_references: int = 0
    repeated_labels: int = 0
    to_itself: int = 0

    def cite(self, document: int, target: int, kind: int) -> None:
        """Add a citation; self-citations are only counted."""
        if target == document:
            self.to_itself += 1
        else:
            self.pairs[document, target] = self.pairs.get((document, target), 0) | kind

    def lose(self, document: int, text: str) -> None:
        """Add a citation that matches no document."""
        self.unresolved[document, " ".join(text.split())[:_SHOWN]] = None


def look(inputs: StageInputs, settings: Settings, context: StageContext) -> str:
    """Return a hash of the bibliography, so that a change of its content runs the stage again."""
    return digest(settings.of(CgRagSettings).bibliography)


def run(inputs: StageInputs, settings: Settings, context: StageContext) -> Outputs:
    """Return citations between documents, unresolved citations, and references between units."""
    own = settings.of(CgRagSettings)
    documents, units = inputs.documents, inputs["units"]
    ids: list[str] = []
    titles: list[str] = []
    about: list[dict[str, Any]] = []
    texts: list[str] = []
    for document in documents:  # whole documents, because units refer only to their sections
        ids.append(document.id)
        titles.append(document.title)
        about.append(dict(document.metadata))
        texts.append(document.text if own.text_links else "")
    library = Library(ids, titles, about)
    listed = entries(own.bibliography)
    fill(library, listed)
    found = CitationsRead()
    first = offsets_of(unit_owners(units), len(ids)).tolist()
    spans = units["unit_span"].tolist()
    labels: dict[str, int] = {}
    for number, text in enumerate(texts):
        if ".. _" in text:
            for label in rst_labels(text):
                labels.setdefault(label, number)
    for number, (name, text) in enumerate(zip(ids, texts, strict=True)):
        if number % _STEP == 0:
            context.report(number, len(ids))
            context.check()
        for written, target in cited_documents(about[number], library):
            if target is None:
                found.lose(number, written)
            else:
                found.cite(number, target, GIVEN)
        if own.text_links:
            _page_links(number, name, about[number].get("links"), library, found)
        if text:
            inner = _link_citations(number, name, text, library, labels, found, keys=bool(listed))
            _inside(first[number], spans[first[number] : first[number + 1]], text, inner, found)
    for later, earlier in library.same.items():  # two ids of one document: the first gets all citations
        for (citing, target), kind in list(found.pairs.items()):
            if citing == later and target != earlier:
                found.cite(earlier, target, kind)
    return _arrays(found, library, len(ids), len(spans))


def _link_citations(
    number: int,
    name: str,
    text: str,
    library: Library,
    labels: dict[str, int],
    found: CitationsRead,
    *,
    keys: bool,
) -> list[tuple[str, int]]:
    """Add the links of a text as citations, and return links within the document."""
    inner: list[tuple[str, int]] = []
    counts = counts_unresolved(name)
    lost_kinds = ("key",) if is_plain_text(name) else ("wiki", "key")
    for link in links(name, text, keys=keys):
        target, lost = _resolve_link(name, link, library, labels)
        if target == number:
            if link.fragment or link.kind == "ref":
                inner.append((link.fragment or link.target, link.at))
            elif link.kind != "mention":
                found.to_itself += 1
        elif target is not None:
            found.cite(number, target, BY_KEY if link.kind == "key" else LINKED)
        elif lost and (counts or link.kind in lost_kinds):
            found.lose(number, lost)
        elif link.kind == "path" and not link.target and link.fragment:
            inner.append((link.fragment, link.at))
    return inner


def _page_links(number: int, name: str, targets: object, library: Library, found: CitationsRead) -> None:
    """Add the links that the reader of a web page has put into its metadata."""
    counts = counts_unresolved(name)
    for link in given_links(targets):
        target, lost = _resolve_link(name, link, library, {})
        if target is not None:
            found.cite(number, target, LINKED)
        elif lost and counts:
            found.lose(number, lost)


def _resolve_link(
    name: str, link: Link, library: Library, labels: dict[str, int]
) -> tuple[int | None, str | None]:
    """Return the document of a link, or a description of a link without one."""
    target = link.target
    if link.kind == "outer":
        return library.find_outer(target), None
    if link.kind == "key":
        return library.find(target), f"@{target}"
    if link.kind == "wiki":
        if not target:
            return library.find_path(name) if link.fragment else None, None
        near = paths(name, target)
        hits = (library.find_path(path) for path in near or ())
        found = next((hit for hit in hits if hit is not None), None)
        return (library.find_name(target) if found is None else found), f"[[{target}]]"
    if link.kind == "ref":
        return labels.get(target.lower()), f":ref:`{target}`"
    if not target:
        return None, None
    near = paths(name, target)
    if near is None:
        return None, None if link.kind == "mention" else target + OUT_OF_SOURCE
    found = next((hit for path in near if (hit := library.find_path(path)) is not None), None)
    if found is None and link.kind == "mention":
        found = library.find_path(target)  # relative to the top of the source
    if found is not None or link.kind == "mention":
        return found, None
    return None, target if is_document(target) else None


def _inside(
    first: int, spans: list[list[int]], text: str, inner: list[tuple[str, int]], found: CitationsRead
) -> None:
    """Return the references between the units of one document."""
    if len(spans) < 2:
        return
    own = references(text, starts_of(spans), inner)
    found.references += [(first + a, first + b) for a, b in sorted(own.pairs)]
    found.lost_references += len(own.unresolved)
    found.repeated_labels += own.repeated


def _arrays(found: CitationsRead, library: Library, documents: int, units: int) -> Outputs:
    pairs = sorted(found.pairs)
    owners = np.array([pair[0] for pair in pairs], np.uint32)
    lost = sorted(found.unresolved)
    inside = np.array(sorted(set(found.references)), np.uint32).reshape(-1, 2)
    return {
        **csr_out("cites", (offsets_of(owners, documents), np.array([pair[1] for pair in pairs], np.uint32))),
        "cite_source": np.array([found.pairs[pair] for pair in pairs], np.uint8),
        **strings_out("unresolved", pack([text for _, text in lost])),
        "unresolved_document": np.array([document for document, _ in lost], np.uint32),
        **csr_out("references", (offsets_of(inside[:, 0], units), np.ascontiguousarray(inside[:, 1]))),
        "duplicate": np.array(sorted(library.same), np.uint32),
        "counts": np.array([found.to_itself, found.lost_references, found.repeated_labels], np.uint64),
    }


_BRACES: Final = re.compile(r"[{}]")


@dataclass(frozen=True, slots=True)
class BibliographyEntry:
    """A bibliography entry: its key, and possible names of the document."""

    key: str
    keys: tuple[str, ...] = ()
    title: str = ""
    files: tuple[str, ...] = field(default=())


def files_of(spec: str | None) -> list[Path]:
    """Return the files of the setting. Raises ConfigError if one is missing or of an unknown format."""
    found = []
    for name in (spec or "").split(","):
        if not name.strip():
            continue
        path = Path(name.strip()).expanduser()
        if path.suffix.lower() not in (".bib", ".bibtex", ".json"):
            raise ConfigError(
                f"bibliography: {path} is neither BibTeX nor CSL-JSON",
                hint="use a .bib, .bibtex or .json file",
            )
        if not path.is_file():
            raise ConfigError(
                f"bibliography: {path} does not exist", hint="check the path, or set bibliography = none"
            )
        found.append(path)
    return found


def digest(spec: str | None) -> str:
    """Return a hash of the content of all files, for fingerprints."""
    return text_digest(part for path in files_of(spec) for part in (path.suffix, _text(path)))


def entries(spec: str | None) -> list[BibliographyEntry]:
    """Return the entries of all files in order. Raises DocumentError if a file is not a bibliography."""
    return [entry for path in files_of(spec) for entry in _read_entries(path)]


def fill(library: Library, listed: Sequence[BibliographyEntry]) -> None:
    """Register the keys that identify documents by DOI or similar ids, by file, or by title."""
    for entry in listed:
        found = next((hit for key in entry.keys if (hit := library.find_outer(key)) is not None), None)
        for name in entry.files:
            found = library.find_name(basename(name)) if found is None else found
        if found is None and entry.title:
            found = library.find_title(entry.title)
        if found is not None:
            library.know(entry.key, found)


def _read_entries(path: Path) -> Iterator[BibliographyEntry]:
    text = _text(path)
    if path.suffix.lower() != ".json":
        yield from (_bibtex_entry(key, fields) for key, fields in parse(text))
        return
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{path}: invalid CSL-JSON: {error}", hint="fix the file, or omit it") from None
    if isinstance(data, dict):
        data = data.get("items", [data])
    if not isinstance(data, list):
        raise DocumentError(f"{path}: not a list of entries", hint="CSL-JSON is a list of objects with an id")
    for item in data:
        if isinstance(item, dict) and isinstance(item.get("id"), (str, int)):
            yield _csl_entry(str(item["id"]), item)


def _bibtex_entry(key: str, fields: Mapping[str, str]) -> BibliographyEntry:
    plain = {name.lower(): _BRACES.sub("", value).strip() for name, value in fields.items()}
    keys = [
        _key(kind, plain.get(name)) for name, kind in (("doi", "doi"), ("pmid", "pubmed"), ("pmcid", "pmc"))
    ]
    if plain.get("archiveprefix", plain.get("eprinttype", "arxiv")).lower() == "arxiv":
        keys.append(_key("arxiv", plain.get("eprint")))
    keys.append(outer_key(plain.get("url", "")))
    files = [part for part in re.split(r"[;:]", plain.get("file", "")) if "." in part]
    return BibliographyEntry(
        key, tuple(k for k in keys if k) + _url(plain.get("url")), plain.get("title", ""), tuple(files)
    )


def _csl_entry(key: str, item: Mapping[str, Any]) -> BibliographyEntry:
    def text(name: str) -> str | None:
        value = item.get(name)
        return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else None

    fields = (("DOI", "doi"), ("PMID", "pubmed"), ("PMCID", "pmc"))
    keys = [_key(kind, text(name)) for name, kind in fields]
    keys.append(outer_key(text("URL") or ""))
    return BibliographyEntry(key, tuple(k for k in keys if k) + _url(text("URL")), text("title") or "")


def _url(url: str | None) -> tuple[str, ...]:
    return (url,) if url else ()


def _key(kind: str, value: str | None) -> str | None:
    return key_of_kind(kind, value) if value else None


def _text(path: Path) -> str:
    try:
        return decode(path.read_bytes()).text
    except OSError as error:
        raise ConfigError(f"bibliography: {path}: {error.strerror or error}") from None
    except DocumentError as error:
        raise DocumentError(f"{path}: {error.message}", hint="fix the file, or omit it") from None


def parse(text: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield (key, fields) of each readable entry; broken entries are skipped."""
    try:
        from bibtexparser.entrypoint import parse_string
    except ImportError as error:
        raise BackendMissing(
            f"a bibliography in BibTeX needs bibtexparser: {error}",
            hint="pip install 'bibtexparser>=2', or give the bibliography as CSL-JSON",
        ) from error
    logger = logging.getLogger("bibtexparser")
    if not logger.handlers:  # it logs broken entries, which Python prints without a handler
        logger.addHandler(logging.NullHandler())
    seen = set()
    for entry in parse_string(text).entries:
        if entry.key not in seen:  # the first of a key counts
            seen.add(entry.key)
            yield entry.key, {field.key: str(field.value) for field in entry.fields}
