"""Assign prompts to the slots of a context; each step decodes a token for all slots in one batch."""

from __future__ import annotations

import codecs
import time
from collections.abc import Iterator
from typing import Any, Final, Literal

from ketrag_fast.errors import BackendError
from ketrag_fast.models.llms.llama.chat_template import ChatTemplate, TemplatePiece
from ketrag_fast.models.llms.llama.gguf_file import GgufFile, free_memory, round_up_tokens
from ketrag_fast.models.llms.llama.weights import (
    BATCH,
    AbortedError,
    LlamaContext,
    LlamaWeights,
    SlotTokens,
    WeightsChoice,
    make_grammar,
)
from ketrag_fast.models.llms.protocol import Cancel, Finish, Limits, ModelReply, Prompt


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
        free: int | None,
    ) -> None:
        self.weights = weights
        self._file, self._choice, self._template = file, choice, template
        self._wanted, self._limit, self._threads = slots, limit, threads
        self._free = free
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
        self,
        prompts: Iterator[Prompt],
        limits: Limits,
        grammar: str | None,
        cancel: Cancel | None,
        *,
        pieces: bool,
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
        self, prompt: Prompt, limits: Limits, grammar: str | None, cancel: Cancel | None, wanted: int
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
            prompt.number,
            len(prefix),
            rest,
            limits=limits,
            cap=cap,
            weights=self.weights,
            choice=self._choice,
            grammar=grammar,
        )
        if not self._paid:
            decoding.tokens_shared, self._paid = 0, True
        self._replies[slot] = decoding
        context.begin(slot)
        return True

    def _make(self, taken: int, cap: int, wanted: int) -> LlamaContext:
        """Create a context with room for this prompt and for prompts up to 50 % longer."""
        if self._context is not None:
            self._context.close()
            self._context = None
        room = min(round_up_tokens(taken + taken // 2 + cap), max(round_up_tokens(self._limit), 256))
        free = free_memory()
        known = [bytes_ for bytes_ in (free, self._free) if bytes_ is not None]
        slots = self._file.fitting_slots(wanted, room, BATCH, min(known) if known else None)
        self._context = LlamaContext(self.weights, slots, room, self._threads)
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


_LOOK_EVERY: Final = 16
_TIMES: Final = 4
"""A passage repeated this often in a row ends the reply."""
_SHORTEST: Final = 240
_LONGEST_TURN: Final = 600
_PROBE: Final = 24


class Decoding:
    """A prompt in a slot. `pending` are the tokens to evaluate next, from position `start` on."""

    def __init__(
        self,
        number: int,
        prefix: int,
        tokens: list[int],
        *,
        limits: Limits,
        cap: int,
        weights: LlamaWeights,
        choice: WeightsChoice,
        grammar: str | None,
    ) -> None:
        self.number = number
        self.tokens_in = prefix + len(tokens)
        self.tokens_shared = prefix
        self.start, self.pending = prefix, list(tokens)
        self.text = ""
        self.streamed = 0  # number of characters already streamed
        self.tokens_out = 0
        self.finish: Finish | None = None
        self.error: str | None = None
        self._seconds, self._cap, self._weights, self._choice = limits.seconds, cap, weights, choice
        self._began = time.monotonic()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._grammar: Any = make_grammar(weights, grammar) if grammar else None

    def close(self) -> None:
        """Free the state of the grammar."""
        if self._grammar is not None:
            self._weights.api.llama_sampler_free(self._grammar)
            self._grammar = None

    def evaluated(self, count: int) -> None:
        """Record that the first `count` pending tokens are in the context."""
        self.start += count
        del self.pending[:count]

    def choose(self, logits: Any) -> None:
        """Choose the next token, after all pending ones have been evaluated."""
        token = self._choice.best(logits, self._grammar)
        if token is None:
            self.finish, self.error = "error", "the model has no token that the grammar allows"
            return
        if token in self._weights.ends:
            self._flush()
            self.finish = "stop"
            return
        if self._grammar is not None:
            self._weights.api.llama_sampler_accept(self._grammar, token)
        self.tokens_out += 1
        self.pending.append(token)
        self.text += self._decoder.decode(self._weights.piece(token))
        if self.tokens_out >= self._cap:
            self.finish = "length"
        elif self.tokens_out % _LOOK_EVERY == 0 and repeats(self.text):
            self.finish = "repetition"

    def look_at_clock(self) -> None:
        """End the reply if its time limit is reached."""
        is_late = self._seconds is not None and time.monotonic() - self._began > self._seconds
        if self.finish is None and is_late:
            self.finish = "time"

    def reply(self, finish: Finish | None = None) -> ModelReply:
        """Return the reply so far; `finish` overrides the reason why it ended."""
        self._flush()
        return ModelReply(
            self.number,
            self.text,
            finish or self.finish or "cancelled",
            self.tokens_in,
            self.tokens_out,
            self.tokens_shared,
            time.monotonic() - self._began,
            self.error,
        )

    def _flush(self) -> None:
        self.text += self._decoder.decode(b"", final=True)
        self._decoder.reset()


def repeats(text: str) -> bool:
    """Return whether a text ends with a passage of up to 600 characters, four times or more in a row.

    Short passages must fill 240 characters, so that a row of dots or a table rule does not count.
    """
    tail = text[-_TIMES * _LONGEST_TURN - _PROBE :]
    if len(tail) < _SHORTEST:
        return False
    probe = tail[-_PROBE:]
    at = tail.rfind(probe, 0, len(tail) - 1)
    if at < 0:
        return False
    turn = len(tail) - _PROBE - at
    length = max(_TIMES * turn, _SHORTEST)
    return turn <= _LONGEST_TURN and len(tail) >= length and tail[-length:-turn] == tail[-(length - turn) :]
