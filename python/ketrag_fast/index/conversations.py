"""The last conversation of the user about an index, in the user's state folder, for `ketrag ask --continue`.

Only the user can read the file. It holds the last questions and answers; a question without `--continue`
replaces it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.user_records import read_record, record_file
from ketrag_fast.storage.durable import make_folder, replace_path
from ketrag_fast.types import Turn

_KIND: Final = "conversations"
_MOST: Final = 8
"""Turns that are stored."""


def stored_turns(indexes: Sequence[Path]) -> list[Turn]:
    """Return the turns of the last conversation about some indexes; none if there is none or it is
    damaged."""
    found = read_record(_KIND, _about(indexes)) or {}
    turns = found.get("turns")
    try:
        return [Turn.from_json(one) for one in turns] if isinstance(turns, list) else []
    except (ValueError, AttributeError):
        return []


def store_turns(indexes: Sequence[Path], turns: Sequence[Turn]) -> bool:
    """Store the last turns of a conversation; return False if the state folder cannot be written."""
    about = _about(indexes)
    file = record_file(_KIND, about)
    data: dict[str, Any] = {**about, "turns": [turn.to_json() for turn in turns[-_MOST:]]}
    aside = file.with_name(f"{file.stem}.{os.getpid()}.tmp")
    try:
        if not file.parent.is_dir():
            with contextlib.suppress(FileExistsError):
                make_folder(file.parent, 0o700)
        with os.fdopen(
            os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8", newline="\n"
        ) as out:
            json.dump(data, out, ensure_ascii=False)
        replace_path(aside, file)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink()
        return False
    return True


def _about(indexes: Sequence[Path]) -> dict[str, str]:
    return {"indexes": "\n".join(str(path.absolute()) for path in indexes)}
