"""Load llama-cpp-python on demand and without output; weights and tokens of a GGUF file."""

from __future__ import annotations

import ctypes
from collections import deque
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from ketrag_fast.errors import BackendError, Cancelled
from ketrag_fast.models.embedders.quiet_imports import import_quietly
from ketrag_fast.models.llms.protocol import Cancel

EXTRA: Final = "llm"
_ERROR: Final = 3  # ggml.h: GGML_LOG_LEVEL_ERROR
_last: deque[str] = deque(maxlen=8)
_kept: list[Any] = []
_PIECE: Final = 64


def library() -> Any:
    """Return the low-level module. Its messages only go to `complaint`. Raises BackendMissing."""
    import_quietly("llama_cpp", EXTRA)
    module: Any = import_quietly("llama_cpp.llama_cpp", EXTRA)
    if not _kept:

        def note(level: int, text: bytes | None, _: Any) -> None:
            if level == _ERROR and text:
                _last.append(text.decode("utf-8", "replace").strip())

        _kept.append(module.llama_log_callback(note))
        module.llama_backend_init()
    # Set at each use: another `Llama` in this process may have replaced it.
    module.llama_log_set(_kept[0], ctypes.c_void_p(0))
    return module


def complaint() -> str:
    """Return and clear the last error messages of the library."""
    text = "; ".join(_last)
    _last.clear()
    return text[:500] or "it gave no reason"


class LlamaWeights:
    """The weights of a file; release them with `close`.

    Raises BackendMissing, BackendError, and Cancelled when `cancel` returns True while loading.
    """

    def __init__(self, path: Path, cancel: Cancel | None = None) -> None:
        self.api = library()
        parameters = self.api.llama_model_default_params()
        raised: list[BaseException] = []

        def go_on(_share: float, _data: object) -> bool:
            try:
                return cancel is None or not cancel()
            except BaseException as error:  # noqa: BLE001 - raised again below; C code cannot pass it
                raised.append(error)
                return False

        callback = self.api.llama_progress_callback(go_on)
        if cancel is not None:
            parameters.progress_callback = callback
        self.pointer = self.api.llama_model_load_from_file(str(path).encode("utf-8"), parameters)
        if not self.pointer and cancel is not None:
            if raised:
                raise raised[0]
            if cancel():
                complaint()
                raise Cancelled(f"loading {path} was stopped")
        if not self.pointer:
            raise BackendError(
                f"llama.cpp cannot load {path}: {complaint()}",
                hint="a newer llama-cpp-python may support this model: pip install -U llama-cpp-python",
            )
        self.vocab = self.api.llama_model_get_vocab(self.pointer)
        self.tokens = int(self.api.llama_vocab_n_tokens(self.vocab))
        if self.api.llama_model_has_encoder(self.pointer) or not self.api.llama_model_has_decoder(
            self.pointer
        ):
            self.close()
            raise BackendError(
                f"{path} is not a text generation model",
                hint="use an instruct model; embedding models belong to --embedder",
            )

    def close(self) -> None:
        """Release the memory."""
        if self.pointer:
            self.api.llama_model_free(self.pointer)
            self.pointer = None

    @property
    def bos(self) -> int:
        """The BOS token, or -1."""
        return int(self.api.llama_vocab_bos(self.vocab))

    @cached_property
    def adds_bos(self) -> bool:
        """Whether the model expects the BOS token before texts."""
        return bool(self.api.llama_vocab_get_add_bos(self.vocab)) and self.bos >= 0

    def sign(self, token: int) -> str:
        """Return the text of a control token."""
        if token < 0:
            return ""
        return str(self.api.llama_vocab_get_text(self.vocab, token).decode("utf-8", "replace"))

    @property
    def eos(self) -> int:
        """The EOS token, or -1."""
        return int(self.api.llama_vocab_eos(self.vocab))

    @cached_property
    def ends(self) -> frozenset[int]:
        """All tokens that end a reply."""
        is_end = self.api.llama_vocab_is_eog
        return frozenset(token for token in range(self.tokens) if is_end(self.vocab, token))

    def tokenise(self, text: str, *, own: bool) -> list[int]:
        """Return the tokens of a text; control tokens are only recognised with `own`."""
        data = text.encode("utf-8", "replace")
        size = len(data) + 8
        while True:
            out = (self.api.llama_token * size)()
            count = int(self.api.llama_tokenize(self.vocab, data, len(data), out, size, False, own))
            if count >= 0:
                return list(out[:count])
            if -count <= size:
                raise BackendError(f"llama.cpp cannot tokenize a text of {len(data):,} bytes")
            size = -count

    def piece(self, token: int) -> bytes:
        """Return the bytes of a token; control tokens have none."""
        size = _PIECE
        while True:
            buffer = ctypes.create_string_buffer(size)
            count = int(self.api.llama_token_to_piece(self.vocab, token, buffer, size, 0, False))
            if count >= 0:
                return buffer.raw[:count]
            size = -count


class WeightsChoice:
    """Finds the best token that a grammar allows, at a fraction of the cost of masking all tokens.

    The grammar checks the most likely tokens first; the best allowed one of these is the best of all, because
    every other token is less likely. Ties go to the smaller token id.
    """

    FIRST: Final = 64

    def __init__(self, weights: LlamaWeights) -> None:
        self._api = weights.api
        kind = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)], align=True)
        self._table = np.zeros(weights.tokens, kind)
        self._array = weights.api.llama_token_data_array(
            data=self._table.ctypes.data_as(ctypes.POINTER(weights.api.llama_token_data)),
            size=0,
            selected=-1,
            sorted=False,
        )
        self._count = weights.tokens

    def best(self, logits: Any, grammar: Any) -> int | None:
        """Return the best token, or None if the grammar allows none. `grammar` may be None."""
        top = int(np.argmax(logits))
        if grammar is None or self.allows(grammar, top):
            return top
        width = min(self.FIRST, self._count)
        while True:
            edge = np.partition(logits, self._count - width)[self._count - width]
            # include all ties with the last one, so that the smaller id wins
            some = np.flatnonzero(logits >= edge)
            some = some[np.lexsort((some, -logits[some]))]
            found = self._allowed(grammar, some, logits[some])
            if found is not None or len(some) >= self._count:
                return found
            width = min(width * 16, self._count)

    def allows(self, grammar: Any, token: int) -> bool:
        """Return whether a grammar allows a token."""
        return self._allowed(grammar, token, 0.0) is not None

    def _allowed(self, grammar: Any, some: Any, values: Any) -> int | None:
        count = len(some) if isinstance(some, np.ndarray) else 1
        table = self._table[:count]
        table["id"] = some
        table["logit"] = values
        self._array.size = count
        self._array.selected = -1
        self._array.sorted = False
        self._api.llama_sampler_apply(grammar, ctypes.byref(self._array))
        good = np.flatnonzero(table["logit"] > -np.inf)
        return int(table["id"][good[0]]) if len(good) else None


def make_grammar(weights: LlamaWeights, text: str) -> Any:
    """Return the state of a grammar, for `llama_sampler_free`. Raises BackendError if it is rejected."""
    grammar = weights.api.llama_sampler_init_grammar(weights.vocab, text.encode("utf-8"), b"root")
    if not grammar:
        raise BackendError(
            f"llama.cpp rejects the grammar of this schema: {complaint()}",
            hint="use fewer limits on lengths and counts in the schema",
        )
    return grammar
