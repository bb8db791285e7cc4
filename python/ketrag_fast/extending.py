"""The API for packages that add a system or a command (docs/how-to/extending.md).

These names are stable; everything else in `ketrag_fast` may move.
Importing this module is cheap and loads no NumPy: every command of `ketrag` loads every installed system.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class MySettings:
...     my_share: float = setting(0.5, "share of the budget", concerns="query", low=0, high=1)
>>> MySettings().my_share
0.5
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.config import Settings, setting
from ketrag_fast.errors import (
    Cancelled,
    ConfigError,
    DeadlineExceeded,
    ExtensionError,
    InputError,
    KetragError,
    StageError,
)
from ketrag_fast.records import dataclass
from ketrag_fast.systems.spec.arrays import ANY, ArraySpec, array, graph, strings
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.drawing import (
    PASSAGE,
    Column,
    DrawableGraph,
    GraphTables,
    NodeBlock,
)
from ketrag_fast.systems.spec.stage import (
    DOCUMENTS,
    Outputs,
    Stage,
    StageContext,
    StageInputs,
)
from ketrag_fast.systems.spec.system import REST, Channel, ChannelQuery, GraphSource, Recipe, Share, System
from ketrag_fast.types import Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    StageArrays = Mapping[str, Mapping[str, NDArray[Any]]]
    """The arrays of all stages, as passed to a channel: `arrays["units"]["unit_tokens"]`."""

__all__ = [
    "ANY",
    "DOCUMENTS",
    "PASSAGE",
    "REST",
    "ArraySpec",
    "Cancelled",
    "Channel",
    "ChannelQuery",
    "Column",
    "Command",
    "ConfigError",
    "DeadlineExceeded",
    "Document",
    "Documents",
    "DrawableGraph",
    "ExtensionError",
    "GraphSource",
    "GraphTables",
    "InputError",
    "KetragError",
    "NodeBlock",
    "Outputs",
    "Recipe",
    "Settings",
    "Share",
    "Stage",
    "StageContext",
    "StageError",
    "StageInputs",
    "System",
    "array",
    "graph",
    "pack_strings",
    "places_of",
    "setting",
    "strings",
    "unpack_strings",
]


@dataclass(frozen=True, slots=True)
class Command:
    """A command of `ketrag` in another package, named by an entry point of the group `ketrag.commands`.

    `declare` adds its arguments to a parser that has the common options (-i, -o, --json and others). `run`
    gets the parsed arguments and returns the exit code; `arguments.open_index()` opens the index of -i or -c.

    Examples:
        >>> def run(arguments: Namespace) -> int:
        ...     with arguments.open_index() as index:
        ...         print(index.stats()["counts"]["documents"])
        ...     return 0
        >>> COMMAND = Command("print the number of documents", lambda parser: None, run)
    """

    help: str
    declare: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


def pack_strings(name: str, texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Pack texts into `NAME_blob` and `NAME_offsets`, the arrays that `strings(NAME, ...)` declares.

    Examples:
        >>> sorted(pack_strings("label", ["one", "two"]))
        ['label_blob', 'label_offsets']
    """
    from ketrag_fast.kernels.text import pack

    blob, offsets = pack(texts)
    return {f"{name}_blob": blob, f"{name}_offsets": offsets}


def unpack_strings(arrays: Mapping[str, NDArray[Any]], name: str) -> list[str]:
    """Unpack all texts of `NAME_blob` and `NAME_offsets`; meant for stages, too slow for queries.

    Examples:
        >>> unpack_strings(pack_strings("label", ["one", "two"]), "label")
        ['one', 'two']
    """
    from ketrag_fast.kernels.text import unpack

    return unpack(arrays[f"{name}_blob"], arrays[f"{name}_offsets"])


def places_of(arrays: Mapping[str, NDArray[Any]], name: str, texts: Sequence[str]) -> NDArray[np.int64]:
    """Return the row of each text among the sorted `NAME_blob` and `NAME_offsets`, or -1 if it is missing.

    Vocabularies (`keywords` of the stage `links`, `vocabulary` of `words`) are sorted by their UTF-8 bytes.
    Only the rows that a binary search compares are read.

    Examples:
        >>> places_of(pack_strings("keyword", ["fram", "maud"]), "keyword", ["maud", "oslo"]).tolist()
        [1, -1]
    """
    import numpy as np

    blob, offsets = arrays[f"{name}_blob"], arrays[f"{name}_offsets"]
    found = np.full(len(texts), -1, np.int64)
    for place, text in enumerate(texts):
        wanted = text.encode("utf-8", "replace")
        low, high = 0, len(offsets) - 1
        while low < high:
            middle = (low + high) // 2
            row = blob[int(offsets[middle]) : int(offsets[middle + 1])].tobytes()
            if row == wanted:
                found[place] = middle
                break
            low, high = (middle + 1, high) if row < wanted else (low, middle)
    return found
