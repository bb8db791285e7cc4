"""Which files the settings of an index name, because a build reads them.

An index stores its settings and may come from somebody else, who could name any file of this machine. A build
therefore reads such a file only if the user named it (flag, environment, settings file, `Settings`) or
confirmed it for this index: by building the index with it, or by `ketrag trust --sources`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ketrag_fast.base.config import catalogue

_LLM: Final = "llm"
_RECORDING: Final = "replay:"


def files_named(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the files that settings name, as absolute paths, each with the setting that names it.

    Examples:
        >>> files_named({"llm": "replay:/home/ada/replies.jsonl", "bibliography": None})
        {'/home/ada/replies.jsonl': 'llm'}
        >>> files_named({"llm": "heuristic"})
        {}
    """
    return {
        os.path.abspath(os.path.expanduser(path)): name  # noqa: PTH100, PTH111 - as sources: links stay
        for name, path in _paths(values)
    }


def _paths(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, spec in catalogue().items():
        value = values.get(name)
        if not isinstance(value, str):
            continue
        if spec.reaches == "files":
            yield from ((name, part.strip()) for part in value.split(",") if part.strip())
        elif name == _LLM and value.startswith(_RECORDING):
            yield name, value.removeprefix(_RECORDING)
