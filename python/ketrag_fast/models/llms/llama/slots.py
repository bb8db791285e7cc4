"""Assign prompts to the slots of a context; each step decodes a token for all slots in one batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from ketrag_fast.errors import BackendError
from ketrag_fast.models.llms.llama.chat_template import ChatTemplate, TemplatePiece
from ketrag_fast.models.llms.llama.decoding import Decoding, ForcedTokens
from ketrag_fast.models.llms.llama.gguf_file import GgufFile
from ketrag_fast.models.llms.llama.memory import fitting_slots, free_memory, round_up_tokens
from ketrag_fast.models.llms.llama.weights import LlamaWeights, WeightsChoice, complaint
from ketrag_fast.models.llms.protocol import Cancel, Limits, ModelReply, Prompt


class Slots:
    """Runs prompts in a context that is created, and enlarged, when a prompt needs it."""

    def __init__(
        self,
        file: GgufFile,
        weights: LlamaWeights,
        choice: WeightsChoice,
        template: ChatTemplate,
        *,
        slots: int,
        limit: int,
        threads: int,
        forced: ForcedTokens,
        shared: bool,
        flash: bool,
        free: int | None,
    ) -> None:
        self.weights = weights
        self._file, self._choice, self._template = file, choice, template
        self._wanted, self._limit, self._threads = slots, limit, threads
        self._forced, self._shared, self._flash, self._free = forced, shared, flash, free
        self._context: LlamaContext | None = None
        self._prefix: tuple[str, list[int]] | None = None
        self._replies: dict[int, Decoding] = {}
        self._paid = False
        self._made_for = 0  # slots requested for the current context, before the memory limit

    @property
    def slots(self) -> int:
        """The number of slots of the current context, or 0."""
        return self._context.slots if self._context is not None else 0

    def close(self) -> None:
        """Release the memory of the context; the owner releases the weights."""
        self._clear()
        if self._context is not None:
            self._context.close()
            self._context = None

    def tokens(self, prompt: Prompt) -> tuple[list[int], list[int]]:
        """Return the tokens of the prefix that prompts with these instructions share, and of the rest."""
        first, rest = self._template.pieces(prompt)
        if self._prefix is None or self._prefix[0] != prompt.instructions:
            weights = self.weights
            bos = [weights.bos] if weights.adds_bos and not self._template.begins_with_bos() else []
            self._prefix = (prompt.instructions, bos + self._tokenise(first))
        return self._prefix[1], self._tokenise(rest)

    def _tokenise(self, pieces: list[TemplatePiece]) -> list[int]:
        return [token for piece in pieces for token in self.weights.tokenise(piece.text, own=piece.own)]

    def run(
        self, prompts: Iterator[Prompt], limits: Limits, grammar: Any, cancel: Cancel | None, *, pieces: bool
    ) -> Iterator[str | ModelReply]:
        """Yield replies as they end, and with `pieces` (for one prompt) their text as it grows."""
        wanted = 1 if pieces else self._wanted
        waiting: Prompt | None = None
        more = True
        try:
            while True:
                yield from self._ended(pieces)
                if cancel is not None and cancel():
                    raise AbortedError
                while more and (self._context is None or len(self._replies) < self.slots):
                    waiting = waiting or next(prompts, None)
                    if waiting is None:
                        more = False
                        break
                    admitted = self._admit(waiting, limits, grammar, cancel, wanted)
                    if admitted is None:
                        break  # it needs an empty context first
                    waiting = None
                    if isinstance(admitted, ModelReply):
                        yield admitted
                if any(decoding.finish is None for decoding in self._replies.values()):
                    self._step(cancel)
                elif not self._replies and waiting is None and not more:
                    return
                if pieces:
                    yield from self._pieces()
        except AbortedError:
            for decoding in list(self._replies.values()):
                yield decoding.reply(decoding.finish or "cancelled")
            if waiting is not None:
                yield ModelReply(waiting.number, "", "cancelled")
        finally:
            self._clear()

    def _pieces(self) -> Iterator[str]:
        """Yield the text written since the last call."""
        for decoding in self._replies.values():
            if new := decoding.text[decoding.streamed :]:
                decoding.streamed = len(decoding.text)
                yield new

    def _admit(
        self, prompt: Prompt, limits: Limits, grammar: Any, cancel: Cancel | None, wanted: int
    ) -> Literal[True] | ModelReply | None:
        """Return True if the prompt got a slot, a reply if it never can, None if it must wait."""
        prefix, rest = self.tokens(prompt)
        taken = len(prefix) + len(rest)
        left = self._limit - taken
        if left < 1:
            return ModelReply(
                prompt.number,
                "",
                "error",
                taken,
                error=f"the prompt has {taken:,} tokens, the context {self._limit:,}",
            )
        cap = max(1, min(limits.tokens, left))
        context = self._context
        if context is None or context.room < taken + cap or self._made_for < wanted:
            if self._replies:
                return None
            try:
                context = self._make(taken, cap, max(wanted, self._made_for))
            except BackendError as error:
                if not self._made_for:  # the first prompt: the others would fail too
                    raise
                return ModelReply(prompt.number, "", "error", taken, error=str(error))
        if context.prefix != tuple(prefix):
            if self._replies:
                return None
            context.set_prefix(prefix, cancel)
            self._paid = False
        slot = next(slot for slot in range(context.slots) if slot not in self._replies)
        decoding = Decoding(
            prompt.number, len(prefix), rest, limits, cap, self.weights, self._choice, grammar, self._forced
        )
        if not self._paid:
            decoding.tokens_shared, self._paid = 0, True
        self._replies[slot] = decoding
        context.begin(slot)
        return True

    def _make(self, taken: int, cap: int, wanted: int) -> LlamaContext:
        """Create a context that fits this prompt, and others that are 50 % longer."""
        if self._context is not None:
            self._context.close()
            self._context = None
        room = min(round_up_tokens(taken + taken // 2 + cap), max(round_up_tokens(self._limit), 256))
        free = free_memory()
        known = [bytes_ for bytes_ in (free, self._free) if bytes_ is not None]
        slots = fitting_slots(self._file, wanted, room, BATCH, min(known) if known else None)
        self._context = LlamaContext(
            self.weights, slots, room, self._threads, shared=self._shared, flash=self._flash
        )
        self._made_for = wanted
        return self._context

    def _step(self, cancel: Cancel | None) -> None:
        """Decode one batch: running replies first, then as much of new prompts as fits."""
        budget = BATCH
        works: list[SlotTokens] = []
        # short ones first: prompts get the space that replies leave
        for slot, decoding in sorted(self._replies.items(), key=lambda item: (len(item[1].pending), item[0])):
            part = decoding.pending[:budget] if decoding.finish is None else []
            if part:
                works.append(SlotTokens(slot, decoding.start, part, wants=len(part) == len(decoding.pending)))
                budget -= len(part)
        try:
            chosen = self._context.decode(works, cancel) if self._context is not None else []
        except BackendError as error:
            for decoding in self._replies.values():
                decoding.finish, decoding.error = "error", str(error)
            return
        for work, logits in zip(works, chosen, strict=True):
            decoding = self._replies[work.slot]
            decoding.evaluated(len(work.tokens))
            if logits is not None:
                decoding.choose(logits)
            decoding.look_at_clock()

    def _ended(self, pieces: bool) -> Iterator[str | ModelReply]:
        for slot in [slot for slot, decoding in self._replies.items() if decoding.finish is not None]:
            decoding = self._replies.pop(slot)
            reply = decoding.reply()
            decoding.close()
            if pieces and (rest := reply.text[decoding.streamed :]):
                yield rest
            if self._context is not None:
                self._context.end(slot)
            yield reply

    def _clear(self) -> None:
        for slot, decoding in self._replies.items():
            decoding.close()
            if self._context is not None:
                self._context.end(slot)
        self._replies.clear()


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
