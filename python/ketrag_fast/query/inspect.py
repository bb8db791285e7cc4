"""What an opened generation holds, looked at without a question: documents, units beside a unit, vectors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ketrag_fast import _core
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import InputError, KetragError, ModeUnavailable
from ketrag_fast.query.mode_choice import chosen_mode
from ketrag_fast.query.open_generation import Opened
from ketrag_fast.query.recipes import whole
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared.row_text import span_of, text_of
from ketrag_fast.systems.shared.rows import documents_of
from ketrag_fast.types import Listed, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.models.embedders.protocol import Role


def document_count(opened: Opened) -> int:
    """Documents of the generation."""
    return int(opened.generation.stages["units"]["document_count"][0])


def documents(opened: Opened, first: int, count: int, containing: str) -> list[Listed]:
    """Some documents in the order of the index, from the one numbered `first` on; of those whose id or title
    contains a text, whatever its case.
    """
    if whole("first", first) < 0 or whole("count", count) < 0:
        raise InputError("first and count must not be negative")
    units, wanted = opened.generation.stages["units"], containing.casefold()
    found: list[Listed] = []
    owners, total = units["unit_document"], document_count(opened)
    starts = [*documents_of(units)[1].tolist(), len(units["document_ids_offsets"]) - 1]
    passed = 0
    for number in range(total) if wanted else range(min(first, total), total):
        if len(found) >= count:
            break
        row, stop = starts[number : number + 2]
        name = text_of(units, "document_ids", row)
        title = text_of(units, "document_titles", row)
        if wanted:
            if wanted not in name.casefold() and wanted not in title.casefold():
                continue
            passed += 1
            if passed <= first:
                continue
        begin, end = np.searchsorted(owners, np.array([row, stop], owners.dtype)).tolist()
        found.append(Listed(name, title, begin, end - begin, opened.document_metadata.of_row(row)))
    return found


def neighbouring_units(opened: Opened, unit: int, before: int, after: int) -> list[tuple[int, Span]]:
    """A unit and its neighbours in its document, in the order of the text, each with its number."""
    units = opened.generation.stages["units"]
    owners = units["unit_document"]
    number = _check_unit(opened, unit)
    if whole("before", before) < 0 or whole("after", after) < 0:
        raise InputError("before and after must not be negative")
    own = int(owners[number])
    begin, end = np.searchsorted(owners, np.array([own, own + 1], owners.dtype)).tolist()
    shown = range(max(begin, number - before), min(end, number + after + 1))
    return [(one, span_of(units, one)) for one in shown]


def metadata_of_unit(opened: Opened, unit: int) -> dict[str, Any]:
    """Return the metadata of the document that a unit is from."""
    return opened.document_metadata.of_unit(_check_unit(opened, unit))


def _check_unit(opened: Opened, unit: int) -> int:
    count = len(opened.generation.stages["units"]["unit_document"])
    number = whole("unit", unit)
    if not 0 <= number < count:
        raise InputError(f"there is no unit {number}", hint=f"units are numbered from 0 to {count - 1}")
    return number


def embeds(opened: Opened, mode: str | None, path: Path) -> bool:
    """Whether questions in a mode get vectors of a model; not where the mode is not served."""
    if opened.questions is None:
        return False
    found = registry()
    try:
        recipe = found.recipe(chosen_mode(opened, mode, path))
    except KetragError:
        return False
    return recipe.rewrite is None and any(found.channels[name].vector != "no" for name in recipe.channels)


def vectors(
    opened: Opened, texts: Sequence[str], role: Role, seconds: float | None = None
) -> NDArray[np.float32]:
    """f32[texts, d] in the index's own space. ModeUnavailable where the index has none."""
    if role not in ("query", "document"):
        raise InputError(f"role: {role!r} is neither query nor document")
    if opened.questions is not None:
        if role == "query":
            return opened.questions.vectors(texts, seconds)
        return opened.questions.embed(texts, role, Limited(None, seconds, time.monotonic()))
    from ketrag_fast.query.python_channels import fitted_vectors

    found = fitted_vectors(opened, texts)
    if found is None:
        raise ModeUnavailable("this index has no vectors", hint="`ketrag index --modes auto,text` adds them")
    return found


def tokens(opened: Opened, texts: Sequence[str]) -> int:
    """How many tokens some texts have, as the index counts."""
    from ketrag_fast.kernels.text import pack

    encoding = str(opened.generation.manifest.settings["encoding"])
    return int(_core.count_tokens(pack(list(texts)), encoding, 1).sum())
