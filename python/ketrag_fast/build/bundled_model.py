"""The embedding model of an index that is carried elsewhere: its files, and whether they fit."""

from __future__ import annotations

from ketrag_fast.errors import BackendError, ConfigError, IndexDamaged, IndexMissing, ModelMismatch
from ketrag_fast.storage.bundle import CarriedModel
from ketrag_fast.storage.generation import MANIFEST, current_number
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import Manifest, read_json, read_manifest
from ketrag_fast.systems.index_settings import spec_here


def model_of(layout: Layout) -> CarriedModel | None:
    """The files of the index's model; None where it needs none.

    Raises ConfigError for a model that is no folder, BackendError where it is not on this machine,
    ModelMismatch where another one is in its place.
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
            f"the index was built with {named}, which is no folder that could be carried",
            hint="leave --with-model out; questions need the same endpoint or folder of vectors there",
        )
    path = resolve(name)
    if path is None:
        raise BackendError(f"{spec} is not on this machine", hint="`ketrag models` lists those that are")
    folder = look(path)
    if of_folder(folder) != stored["fingerprint"]:
        raise ModelMismatch(
            f"{path} is not the model that the index was built with",
            hint="put that one back, or make the vectors anew with this one: ketrag reembed",
        )
    return CarriedModel(named, stored["fingerprint"], dict(folder.files))


def require_model(layout: Layout) -> None:
    """IndexDamaged where the model that came with an index is not that of its vectors."""
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
        reason = "it is another one"
    except BackendError as error:
        reason = error.message
    raise IndexDamaged(
        f"the model in the bundle is not that of the index: {reason}", hint="make the bundle anew"
    )


def _manifest(layout: Layout) -> Manifest:
    number = current_number(layout)
    if number is None:
        raise IndexMissing(f"the index in {layout.root} was never finished", hint="run `ketrag index`")
    return read_manifest(layout.generation(number) / MANIFEST)
