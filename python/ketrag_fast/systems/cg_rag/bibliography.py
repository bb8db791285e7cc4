"""Bibliographies: BibTeX and CSL-JSON files whose keys identify documents."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import basename
from typing import Any, Final

from ketrag_fast.errors import BackendMissing, ConfigError, DocumentError
from ketrag_fast.readers.decode import decode
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.systems.cg_rag.citation_keys import key_of_kind, outer_key
from ketrag_fast.systems.cg_rag.resolution import Library

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
