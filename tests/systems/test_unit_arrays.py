"""The arrays of units by their rows, which are derived from the declaration of the stage."""

from __future__ import annotations

from ketrag_fast.systems.shared import UNITS
from ketrag_fast.systems.shared.units import SIZES, row_arrays

OWN_CODE = {"document_count", "document_hashes", "chunk_units"}
"""Arrays that follow from others, and are not rows that are copied."""


def test_every_array_of_units_is_derived_or_has_code_of_its_own() -> None:
    assert UNITS.arrays is not None
    wanted = {name for name, spec in UNITS.arrays.items() if not spec.optional} - OWN_CODE
    found: list[str] = []
    for size in SIZES:
        own = row_arrays(size)
        texts = [f"{name}_{part}" for name in own.texts for part in ("blob", "offsets")]
        found += [*own.dense, *own.numbered, *texts]
    assert len(found) == len(set(found)) and set(found) == wanted


def test_numbers_refer_to_kinds_of_rows() -> None:
    assert {of for size in SIZES for of in row_arrays(size).numbered.values()} <= set(SIZES)
    assert row_arrays("units").numbered == {"unit_chunk": "chunks", "unit_document": "documents"}
