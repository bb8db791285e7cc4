"""Bundles: write an index to a single file and restore it."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast.errors import BackendError, ConfigError, IndexDamaged, IndexMissing, ModelMismatch
from ketrag_fast.storage import bundle
from ketrag_fast.storage.bundle import CarriedModel
from ketrag_fast.storage.generation import MANIFEST, current_number
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import Manifest, read_json, read_manifest
from ketrag_fast.systems.index_settings import spec_here


def write_bundle(path: Path, file: Path, *, replace: bool, with_model: bool) -> int:
    """Write the index at `path`, optionally with its embedding model, to a file; return its size in bytes."""
    layout = Layout(path)
    layout.require()
    model = model_of(layout) if with_model else None
    return bundle.bundle(layout, file, replace=replace, model=model)


def read_bundle(file: Path, path: Path) -> None:
    """Create the index at `path` from a file that `write_bundle` wrote."""
    if not file.exists():
        raise IndexMissing(f"no such file: {file}", hint="`ketrag bundle FILE -i DIR` writes one")
    bundle.unbundle(file, Layout(path), check=require_model)


def model_of(layout: Layout) -> CarriedModel | None:
    """Return the files of the index's model; None if it was built without one.

    Raises:
        ConfigError: the model is not a folder.
        BackendError: the model is not on this machine.
        ModelMismatch: the folder holds a different model.
    """
    from ketrag_fast.models.embedders.discovery import resolve
    from ketrag_fast.models.embedders.fingerprint import of_folder
    from ketrag_fast.models.embedders.model_folder import look
    from ketrag_fast.models.embedders.registry import FOLDERS, parse

    manifest = _manifest(layout)
    stored, named = manifest.models.get("embedder"), str(manifest.settings.get("embedder"))
    if not stored:
        return None
    spec = spec_here(named, layout)
    kind, name = parse(spec)
    if kind not in FOLDERS:
        raise ConfigError(
            f"the index was built with {named}, which is not a model folder and cannot be bundled",
            hint="omit --with-model; queries will need the same endpoint or folder of vectors",
        )
    path = resolve(name)
    if path is None:
        raise BackendError(f"{spec} is not on this machine", hint="`ketrag models` lists installed models")
    folder = look(path)
    if of_folder(folder) != stored["fingerprint"]:
        raise ModelMismatch(
            f"{path} is not the model that the index was built with",
            hint="restore the original model, or embed again with this one: ketrag reembed",
        )
    return CarriedModel(named, stored["fingerprint"], dict(folder.files))


def require_model(layout: Layout) -> None:
    """Raise IndexDamaged if the bundled model is not the model that computed the index's vectors."""
    from ketrag_fast.models.embedders.fingerprint import of_folder
    from ketrag_fast.models.embedders.model_folder import look

    if not layout.model_record.is_file():
        return
    manifest = _manifest(layout)
    stored, record = manifest.models.get("embedder", {}), read_json(layout.model_record)
    same = (record["spec"], record["fingerprint"]) == (
        manifest.settings.get("embedder"),
        stored.get("fingerprint"),
    )
    try:
        if same and of_folder(look(layout.model)) == record["fingerprint"]:
            return
        reason = "it is a different model"
    except BackendError as error:
        reason = error.message
    raise IndexDamaged(
        f"the model in the bundle does not match the index: {reason}", hint="create the bundle again"
    )


def _manifest(layout: Layout) -> Manifest:
    number = current_number(layout)
    if number is None:
        raise IndexMissing(f"the index in {layout.root} was never finished", hint="run `ketrag index`")
    return read_manifest(layout.generation(number) / MANIFEST)
