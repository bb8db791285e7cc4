"""What somebody may see of an opened index: the index of these documents alone, opened in its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ketrag_fast.base.config import Settings
from ketrag_fast.base.filters import allow_condition
from ketrag_fast.base.filters.allow import as_allow
from ketrag_fast.base.progress import Callback, Meter, stopper
from ketrag_fast.build.allowed_index import allowed_index
from ketrag_fast.errors import IndexDamaged, IndexMissing, InputError
from ketrag_fast.kernels.text import unpack
from ketrag_fast.query.open_generation import Opened, load
from ketrag_fast.storage.layout import Layout

Given = str | Mapping[str, Any]


def restrict(
    folder: Path, opened: Opened, allow: Given, settings: Settings, callback: Callback | None = None
) -> tuple[Opened, Path]:
    """The documents of `opened`, whose index lies in `folder`, that `allow` fits, as an index of their own;
    and where that lies. Made if it is not there; models that are open serve it, too. Raises InputError where
    `allow` makes no sense, without a word of what there is, and what `pipeline.allowed` raises.

    `callback` hears of every step, of the filter's too: it ends the call by returning False, or by raising.
    """
    check = stopper(Meter("filter", callback))
    condition = allow_condition(allow)
    try:
        fits = opened.columns(check).fitting(condition, names=False, check=check)
    except InputError as error:
        raise as_allow(error) from None
    units = opened.generation.stages["units"]
    # A row is a document or a section of one: of a document that is allowed all are.
    fitting: dict[str, bool] = {}
    names = unpack(units["document_ids_blob"], units["document_ids_offsets"])
    for name, fit in zip(names, fits.tolist(), strict=True):
        fitting[name] = fit and fitting.get(name, True)
    documents = [name for name, fit in fitting.items() if fit]
    made = allowed_index(
        Layout(folder), opened.generation, documents, opened.settings, opened.trust, callback
    )
    given = Settings(**{name: value for name, value in settings.given.items() if name != "allow"})
    try:
        found = load(made.folder, given, _lender(opened, made.folder), opened.trust)
    except (IndexMissing, IndexDamaged):  # another process removed it between the two, or it is damaged
        made = allowed_index(
            Layout(folder),
            opened.generation,
            documents,
            opened.settings,
            opened.trust,
            callback,
            rebuild=True,
        )
        found = load(made.folder, given, _lender(opened, made.folder), opened.trust)
    # Who keeps answers by the number of the generation sees that of the whole index.
    manifest = replace(found.generation.manifest, generation=opened.generation.number)
    return replace(
        found, generation=replace(found.generation, manifest=manifest), pending=made.pending
    ), made.folder


def _lender(opened: Opened, folder: Path) -> Opened | None:
    """Who lends its models: the whole index, where the other one was made with the same."""
    from ketrag_fast.storage.generation import MANIFEST, current_number
    from ketrag_fast.storage.manifest import read_manifest

    layout = Layout(folder)
    own = read_manifest(layout.generation(current_number(layout) or 1) / MANIFEST)
    same = own.models.get("embedder") == opened.generation.manifest.models.get("embedder")
    return opened if same else None
