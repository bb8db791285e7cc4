"""Load llama-cpp-python on demand and without output; weights and tokens of a GGUF file."""

from __future__ import annotations

import ctypes
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from ketrag_fast.errors import BackendError, Cancelled
from ketrag_fast.models.llms.protocol import Cancel
from ketrag_fast.models.optional_imports import import_quietly
from ketrag_fast.records import dataclass

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


BATCH: Final = 512
"""Maximum number of tokens of one step."""
_ABORTED: Final = 2
_SHORT: Final = 32  # tokens
_SOON: Final = 0.1  # seconds


class AbortedError(Exception):
    """The work was cancelled while it computed."""


@dataclass(frozen=True, slots=True)
class SlotTokens:
    """Tokens of a slot for the next batch. `wants`: whether logits after the last token are needed."""

    slot: int
    start: int
    tokens: Sequence[int]
    wants: bool


class LlamaContext:
    """A context of `slots` sequences of up to `room` tokens. Raises BackendError if out of memory."""

    def __init__(self, weights: LlamaWeights, slots: int, room: int, threads: int) -> None:
        self._weights, self._api = weights, weights.api
        self.slots, self.room = slots, room
        api = self._api
        parameters = api.llama_context_default_params()
        parameters.n_ctx = room * (slots + 1)
        parameters.n_batch = parameters.n_ubatch = BATCH
        parameters.n_seq_max = slots + 1
        parameters.kv_unified = False
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_DISABLED
        parameters.no_perf = True
        self._stop: Callable[[], bool] | None = None
        self._last = 0.0
        self._raised: BaseException | None = None
        self._callback = api.ggml_abort_callback(self._should_abort)
        self.pointer = api.llama_init_from_model(weights.pointer, parameters)
        if not self.pointer:
            raise BackendError(
                f"llama.cpp cannot create a context of {slots} times {room:,} tokens: {complaint()}",
                hint="use fewer --llm-slots or a smaller --llm-context",
            )
        self._memory = api.llama_get_memory(self.pointer)
        self._batch = api.llama_batch_init(BATCH, 0, 1)
        shape = (BATCH,)
        self._tokens = np.ctypeslib.as_array(self._batch.token, shape)
        self._places = np.ctypeslib.as_array(self._batch.pos, shape)
        self._outputs = np.ctypeslib.as_array(self._batch.logits, shape)
        np.ctypeslib.as_array(self._batch.n_seq_id, shape)[:] = 1
        self.prefix: tuple[int, ...] = ()

    def close(self) -> None:
        """Release the memory."""
        if self.pointer:
            self._api.llama_batch_free(self._batch)
            self._api.llama_free(self.pointer)
            self.pointer = None

    def set_prefix(self, tokens: Sequence[int], stop: Callable[[], bool] | None) -> None:
        """Evaluate the prefix of all sequences. No slot may be in use."""
        self.prefix = ()
        self._api.llama_memory_clear(self._memory, True)
        for at in range(0, len(tokens), BATCH):
            part = tokens[at : at + BATCH]
            self.decode([SlotTokens(-1, at, part, wants=False)], stop)
        self.prefix = tuple(tokens)

    def begin(self, slot: int) -> None:
        """Reset a slot to the prefix."""
        self.end(slot)
        if self.prefix:
            self._api.llama_memory_seq_cp(self._memory, 0, slot + 1, -1, -1)

    def end(self, slot: int) -> None:
        """Clear a slot."""
        self._api.llama_memory_seq_rm(self._memory, slot + 1, -1, -1)

    def decode(self, works: Sequence[SlotTokens], stop: Callable[[], bool] | None) -> list[Any]:
        """Run all requests in one batch; return for each the logits f32[vocabulary], or None if not wanted.

        The logits are views that the next call overwrites. Raises AbortedError, BackendError.
        """
        at = 0
        ends = []
        for work in works:
            count = len(work.tokens)
            self._tokens[at : at + count] = work.tokens
            self._places[at : at + count] = range(work.start, work.start + count)
            self._outputs[at : at + count] = 0
            for row in range(at, at + count):
                self._batch.seq_id[row][0] = work.slot + 1
            at += count
            self._outputs[at - 1] = work.wants
            ends.append(at - 1)
        self._batch.n_tokens = at
        self._run(stop)
        return [self._logits(end) if work.wants else None for work, end in zip(works, ends, strict=True)]

    def _run(self, stop: Callable[[], bool] | None) -> None:
        # Hundreds of calls within a short step would cost more than they save.
        asks = stop is not None and (self._batch.n_tokens > _SHORT or self._last > _SOON)
        self._stop = stop
        callback = self._callback if asks else self._api.ggml_abort_callback(0)
        self._api.llama_set_abort_callback(self.pointer, callback, None)
        began = time.monotonic()
        code = self._api.llama_decode(self.pointer, self._batch)
        self._last = time.monotonic() - began
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised
        if code == _ABORTED:
            raise AbortedError
        if code:
            raise BackendError(f"llama.cpp cannot decode (code {code}): {complaint()}")

    def _should_abort(self, _: Any) -> bool:
        """Return whether to abort; llama.cpp calls this, and no exception may pass through it."""
        try:
            return self._stop is not None and self._stop()
        except BaseException as error:  # noqa: BLE001 - Ctrl-C too; it is raised again after the call
            self._raised = error
            return True

    def _logits(self, row: int) -> Any:
        pointer = self._api.llama_get_logits_ith(self.pointer, row)
        if not pointer:
            raise BackendError("llama.cpp returned no logits for a requested token")
        return np.ctypeslib.as_array(pointer, (self._weights.tokens,))
