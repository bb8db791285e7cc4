"""BibTeX through bibtexparser, loaded when a bibliography needs it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from ketrag_fast.errors import BackendMissing


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
