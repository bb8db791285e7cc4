"""Verify the contents of an index folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError, IndexDamaged, IndexMissing, KetragError
from ketrag_fast.storage.arrays import check_hashes
from ketrag_fast.storage.bundle import digest_of
from ketrag_fast.storage.database import connect
from ketrag_fast.storage.disk_usage import notes
from ketrag_fast.storage.generation import current_number, lost_number, open_generation
from ketrag_fast.storage.io_errors import REPAIR, writing
from ketrag_fast.storage.journal import Journal
from ketrag_fast.storage.layout import MERGE, Layout
from ketrag_fast.storage.manifest import read_json
from ketrag_fast.storage.tables import Tables
from ketrag_fast.storage.vector_cache import VectorTable
from ketrag_fast.systems.index_settings import reading_settings

_LOOKS: Final = 3
_MOST_LOOKS: Final = 100
_PAUSE: Final = 0.1
"""Seconds between two attempts of a check."""
Checked = TypeVar("Checked", Layout, Path)
_MODEL_HINT: Final = (
    "put the model's folder back from the bundle that it came with, or name a copy: --embedder local:FOLDER"
)


_OLDER_HINT: Final = (
    "nothing reads this older generation unless you name it; "
    "`ketrag index --keep-generations 1` removes all older ones"
)


class Finding(NamedTuple):
    """The result of one check; `error` is None if nothing is wrong.

    A `note` describes a problem that is not damage, and its consequence.
    """

    what: str
    path: Path
    error: KetragError | None
    note: str | None = None


def examine(root: Path) -> Iterator[Finding]:
    """Check the tables, the file CURRENT and every byte of all generations.

    Changes nothing, and may run during a build. Raises IndexMissing if there is no index.
    """
    layout = Layout(root)
    numbers = layout.generations()
    if not numbers and not layout.tables.exists():
        raise IndexMissing(f"no index in {root}", hint=f"build one: ketrag index SOURCES -i {root}")
    yield Finding("tables", layout.tables, _lasting(layout, _tables))
    yield Finding("published", layout.current, _lasting(layout, _check_published))
    if layout.model_record.exists():
        yield Finding("model", layout.model, _error(_model, layout))
    newest = current_number(layout) or max(numbers, default=0)
    for number in numbers:
        folder = layout.generation(number)
        error = _error(_generation, folder)
        if error is not None and number < newest:
            error.hint = _OLDER_HINT
        if error is None or folder.exists():  # otherwise a builder removed it meanwhile
            yield Finding(f"generation {number}", folder, error)
    yield from (Finding(what, path, None, note) for what, path, note in notes(layout))


def _lasting(layout: Layout, check: Callable[[Layout], None]) -> KetragError | None:
    """Repeat a check until no builder writes during it, and return its error or None.

    If a builder writes all the time, the error of the last attempt is returned.
    """
    quiet = 0
    error: KetragError | None = None
    for _ in range(_MOST_LOOKS):
        before = _file_stamps(layout)
        error = _error(check, layout)
        quiet += _file_stamps(layout) == before
        if error is None or quiet == _LOOKS:
            break
        time.sleep(_PAUSE)
    return error


def _file_stamps(layout: Layout) -> list[tuple[int, int] | None]:
    """Return sizes and times of the files that a builder overwrites."""
    stamps: list[tuple[int, int] | None] = []
    log = layout.tables.with_name(f"{layout.tables.name}-wal")
    for path in (layout.tables, log, layout.current):
        try:
            state = path.stat()
        except OSError:
            stamps.append(None)
        else:
            stamps.append((state.st_size, state.st_mtime_ns))
    return stamps


def _error(check: Callable[[Checked], None], value: Checked) -> KetragError | None:
    try:
        check(value)
    except KetragError as error:
        return error
    return None


def _tables(layout: Layout) -> None:
    if not layout.tables.exists():
        raise IndexDamaged(
            f"{layout.tables} is missing",
            hint="queries still work; `ketrag index SOURCES` reads the sources again",
        )
    with Tables(layout.tables, read_only=True) as tables:
        tables.check()
        tables.sense()
        if not (layout.work / MERGE).exists():  # the texts are in the parts until the merge is finished
            tables.verify()
        there = tables.tables()
    if "replies" in there:
        with Journal(layout.tables, read_only=True) as journal:
            journal.check()
    if "vectors" in there:
        with writing(layout.tables), closing(connect(layout.tables, None)) as db:
            VectorTable(db).check(layout.tables)


def _check_published(layout: Layout) -> None:
    if current_number(layout) is not None:
        return
    there, hint = bool(layout.generations()), "run `ketrag index` again: it builds one from the documents"
    lost = f"the generation that {layout.current} names is lost, and"
    if not there and layout.current.exists():
        raise IndexDamaged(f"{lost} there is no other", hint=hint)
    if lost_number(layout) is not None:
        raise IndexDamaged(f"{lost} all other generations are older", hint=hint)
    if there:
        raise IndexDamaged(
            f"{layout.current} does not name a generation; the newest complete one is used instead",
            hint="run `ketrag index` again: it writes the file again",
        )


def _model(layout: Layout) -> None:
    """Check the embedding model that was bundled with the index."""
    record = read_json(layout.model_record)
    try:
        files = {str(name): str(digest) for name, digest in record["files"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise IndexDamaged(f"{layout.model_record} is invalid: {error!r}", hint=_MODEL_HINT) from error
    for name, digest in sorted(files.items()):
        path = layout.root / name
        try:
            right = digest_of(path) == digest
        except OSError as error:
            raise IndexDamaged(f"cannot read {path}: {error.strerror}", hint=_MODEL_HINT) from error
        if not right:
            raise IndexDamaged(f"{path} is altered", hint=_MODEL_HINT)


def _generation(folder: Path) -> None:
    generation = open_generation(folder, "full")
    for name, record in generation.manifest.stages.items():
        check_hashes(generation.folder / name, record.files)
    try:
        reading_settings(Settings(), generation)
    except ConfigError as error:
        raise IndexDamaged(f"{folder}: the manifest has a wrong setting: {error}", hint=REPAIR) from error
