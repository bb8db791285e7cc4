"""An index with a skeleton made from records at hand: the arrays that the later stages would write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ketrag_fast import _core
from ketrag_fast.storage.generation import open_current
from ketrag_fast.storage.layout import Layout
from tests.oracles.skeleton import ChunkReply
from tests.support import all_kernels as kernels
from tests.support.replies import packed_replies


def searcher_with_skeleton(index: Path, folder: Path, replies: Sequence[ChunkReply]) -> _core.Searcher:
    """The index's arrays with stages `skeleton` and `entities`, whose files lie in `folder`.

    Entities get vectors in the space fitted on the corpus, as the questions do.
    """
    generation = open_current(Layout(index))
    units, words = generation.stages["units"], generation.stages["words"]
    texts = (units["unit_texts_blob"], units["unit_texts_offsets"])
    skeleton = kernels.fold_skeleton(packed_replies(replies), units["chunk_units"], texts, units["unit_span"])
    names = kernels.unpack(skeleton["entity_name_blob"], skeleton["entity_name_offsets"])
    known = kernels.unpack(words["vocabulary_blob"], words["vocabulary_offsets"])
    number = {word: i for i, word in enumerate(known)}
    rows = [sorted({number[w] for w, _ in kernels.tokenise(name) if w in number}) for name in names]
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    indices = np.array([w for row in rows for w in row], np.uint32)
    basis = generation.stages["vectors"]["basis"]
    vectors = _core.embed_rows(np.ascontiguousarray(basis), indptr, indices, np.ones(len(indices), np.uint32))
    files = {
        f"{stage}.{name}": str(arrays.path(name))
        for stage, arrays in generation.stages.items()
        for name in arrays
    }
    codes = kernels.quantise(vectors) if len(vectors) else None
    made: dict[str, Any] = {f"skeleton.{name}": array for name, array in skeleton.items()}
    made["entities.entity_vectors"] = vectors
    if codes is not None:
        made |= {f"entities.entity_{name}": value for name, value in zip(CODES, codes, strict=True)}
    for name, array in made.items():
        files[name] = str(folder / f"{name}.npy")
        np.save(files[name], array, allow_pickle=False)
    return _core.Searcher(files, "cl100k_base", "english")


CODES = ("codes", "scale", "residual")
