"""Open the index of the documents that a caller may see, in place of the whole index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ketrag_fast.base.config import Settings
from ketrag_fast.base.filters import Condition
from ketrag_fast.base.filters.allow import as_allow
from ketrag_fast.base.progress import Callback, Meter, stopper
from ketrag_fast.building.allowed_index import allowed_index
from ketrag_fast.errors import IndexDamaged, IndexMissing, InputError
from ketrag_fast.query.open_generation import Opened, load
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.shared.rows import read_strings


def restrict(
    folder: Path,
    opened: Opened,
    allow: Condition,
    settings: Settings,
    progress: Callback | None = None,
) -> tuple[Opened, Path]:
    """Open the index of the documents of `opened` that match `allow`; build it if it does not exist.

    Models that `opened` has open are shared if the indexes use the same ones.

    Args:
        folder: Folder of the index that `opened` belongs to.
        opened: The generation to restrict.
        allow: Condition on document metadata.
        settings: Settings given when the index was opened.
        progress: Called at every step; returning False or raising stops the call.

    Returns:
        The opened generation and the folder of its index.

    Raises:
        InputError: A field is unknown; the message does not reveal which fields exist.
        IndexLocked, ReadOnly, Cancelled: As in `build.allowed_index`.
    """
    documents = _matching_documents(opened, allow, progress)
    layout, generation, trust = Layout(folder), opened.generation, opened.trust
    part = allowed_index(layout, generation, documents, opened.settings, trust, progress)
    given = Settings(**{name: value for name, value in settings.given.items() if name != "allow"})
    try:
        loaded = load(part.folder, given, _lender(opened, part.folder), trust)
    except (IndexMissing, IndexDamaged):  # another process removed it meanwhile, or it is damaged
        part = allowed_index(layout, generation, documents, opened.settings, trust, progress, rebuild=True)
        loaded = load(part.folder, given, _lender(opened, part.folder), trust)
    # Report the number of the whole index, because callers cache answers by generation.
    manifest = replace(loaded.generation.manifest, generation=generation.number)
    numbered = replace(loaded.generation, manifest=manifest)
    return replace(loaded, generation=numbered, pending=part.pending), part.folder


def _matching_documents(opened: Opened, allow: Condition, progress: Callback | None) -> list[str]:
    """Return the ids of the documents whose metadata matches."""
    check = stopper(Meter("filter", progress))
    try:
        matches = opened.columns(check).fitting(allow, names=False, check=check)
    except InputError as error:
        raise as_allow(error) from None
    units = opened.generation.stages["units"]
    # A row is a document or one of its sections. A document is allowed if all of its rows are.
    allowed: dict[str, bool] = {}
    names = read_strings(units, "document_ids")
    for name, match in zip(names, matches.tolist(), strict=True):
        allowed[name] = match and allowed.get(name, True)
    return [name for name, match in allowed.items() if match]


def _lender(opened: Opened, folder: Path) -> Opened | None:
    """Return the whole index as a source of models if the index in `folder` has the same embedding model."""
    from ketrag_fast.storage.generation import MANIFEST, current_number
    from ketrag_fast.storage.manifest import read_manifest

    layout = Layout(folder)
    manifest = read_manifest(layout.generation(current_number(layout) or 1) / MANIFEST)
    same = manifest.models.get("embedder") == opened.generation.manifest.models.get("embedder")
    return opened if same else None
