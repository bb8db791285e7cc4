"""Placeholders of vectors: recognised in every format, unlike any vector, and without weight."""

from __future__ import annotations

import numpy as np
import pytest

from ketrag_fast.storage.vector_codes import Packing, StoredVectors, are_placeholders, columns, placeholder


@pytest.mark.parametrize("dimension", [16, 31, 33, 384])
@pytest.mark.parametrize("format", ["signs", "4bit", "int8", "f32"])
def test_only_placeholders_are_recognised(format: str, dimension: int) -> None:  # noqa: A002
    vectors = np.random.default_rng(dimension).normal(size=(200, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[5] = 0  # an empty text
    vectors[7] = placeholder(dimension)
    expected = [row == 7 for row in range(len(vectors))]
    packed = Packing(format, dimension).pack(vectors)
    assert are_placeholders(packed).tolist() == expected
    if format != "signs":
        arrays = columns(packed, "unit")
        stored = StoredVectors.of(arrays, dimension=dimension)
        assert stored.placeholders().tolist() == expected
        assert abs(stored.scores(vectors[0])[7]) < 1e-25
