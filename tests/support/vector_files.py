"""Write a folder of precomputed vectors, for `vectors:FOLDER`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.models.embedders.precomputed import ARRAY, IDS, text_key
from ketrag_fast.models.embedders.protocol import Role


def write_vectors(
    folder: Path, texts: Sequence[str], vectors: NDArray[Any], role: Role | None = None
) -> None:
    """Write texts and vectors to such a folder."""
    assert vectors.ndim == 2 and len(vectors) == len(texts)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / ARRAY, vectors, allow_pickle=False)
    extra = {} if role is None else {"role": role}
    with (folder / IDS).open("w", encoding="utf-8", newline="\n") as file:
        for text in texts:
            file.write(json.dumps({"sha256": text_key(text).hex(), **extra}) + "\n")
