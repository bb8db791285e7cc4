"""A context of llama.cpp: several sequences that share a prefix, decoded together in one batch.

Sequence 0 contains the prefix (the instructions), evaluated once in separate batches; each slot begins as a
copy of it and is cleared when its reply ends, so a reply cannot see another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ketrag_fast.errors import BackendError
from ketrag_fast.models.llms.llama.weights import LlamaWeights, complaint

BATCH: Final = 512
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

    def __init__(
        self, weights: LlamaWeights, slots: int, room: int, threads: int, *, shared: bool, flash: bool
    ) -> None:
        self._weights, self._api = weights, weights.api
        self.slots, self.room, self.shared = slots, room, shared
        api = self._api
        parameters = api.llama_context_default_params()
        parameters.n_ctx = room * (slots + 1)
        parameters.n_batch = parameters.n_ubatch = BATCH
        parameters.n_seq_max = slots + 1
        parameters.kv_unified = shared
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.flash_attn_type = (
            api.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash else api.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
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
