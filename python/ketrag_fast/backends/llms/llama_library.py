"""llama-cpp-python, loaded when it is needed, kept from the screen."""

from __future__ import annotations

import ctypes
from collections import deque
from typing import Any, Final

from ketrag_fast.backends.embedders.quiet import need

EXTRA: Final = "llm"
_ERROR: Final = 3  # ggml.h: GGML_LOG_LEVEL_ERROR
_last: deque[str] = deque(maxlen=8)
_kept: list[Any] = []


def library() -> Any:
    """The low-level module; BackendMissing names the extra. Its messages go nowhere but to `complaint`."""
    need("llama_cpp", EXTRA)
    module: Any = need("llama_cpp.llama_cpp", EXTRA)
    if not _kept:

        def note(level: int, text: bytes | None, _: Any) -> None:
            if level == _ERROR and text:
                _last.append(text.decode("utf-8", "replace").strip())

        _kept.append(module.llama_log_callback(note))
        module.llama_backend_init()
    # Set at each use: a `Llama` of the user's own, made since, may have set another.
    module.llama_log_set(_kept[0], ctypes.c_void_p(0))
    return module


def complaint() -> str:
    """What the library said last when it failed, and no longer remembers."""
    text = "; ".join(_last)
    _last.clear()
    return text[:500] or "it gave no reason"
