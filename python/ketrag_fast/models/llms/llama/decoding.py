"""The state of a reply being generated: pending tokens, text so far, and why it ends."""

from __future__ import annotations

import codecs
import time
from typing import Any, Final, Literal

from ketrag_fast.models.llms.llama.json_cursor import JsonCursor, MismatchError
from ketrag_fast.models.llms.llama.json_form import Form
from ketrag_fast.models.llms.llama.weights import LlamaWeights, WeightsChoice, make_grammar
from ketrag_fast.models.llms.protocol import Finish, Limits, ModelReply

ForcedTokens = Literal["batch", "single", "off"]
"""How text that the grammar forces is handled: its tokens are fed in one batch, or one by one (for tests: the
texts must be equal), or chosen like all others."""

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
        limits: Limits,
        cap: int,
        weights: LlamaWeights,
        choice: WeightsChoice,
        grammar: tuple[Form, str] | None,
        forced: ForcedTokens,
    ) -> None:
        self.number, self.limits = number, limits
        self.tokens_in = prefix + len(tokens)
        self.tokens_shared = prefix
        self.start, self.pending = prefix, list(tokens)
        self.text = ""
        self.streamed = 0  # number of characters already streamed
        self.tokens_out = 0
        self.finish: Finish | None = None
        self.error: str | None = None
        self._cap, self._weights, self._choice, self._forced = cap, weights, choice, forced
        self._began = time.monotonic()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._cursor = JsonCursor(grammar[0]) if grammar else None
        self._queue: list[int] = []
        self._looked = 0
        self._grammar: Any = make_grammar(weights, grammar[1]) if grammar else None
        self._force()
        self._ended()

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
        token = self._queue.pop(0) if self._queue else self._choice.best(logits, self._grammar)
        if token is None:
            self.finish, self.error = "error", "the model has no token that the grammar allows"
            return
        if token in self._weights.ends:
            self._flush()
            self.finish = "stop"
            return
        self._write(token)
        if not self._ended():
            self._force()
            self._ended()

    def look_at_clock(self) -> None:
        """End the reply if its time limit is reached."""
        seconds = self.limits.seconds
        if self.finish is None and seconds is not None and time.monotonic() - self._began > seconds:
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

    def _write(self, token: int) -> None:
        """Append an allowed token to the text and to the pending tokens."""
        if self._grammar is not None:
            self._weights.api.llama_sampler_accept(self._grammar, token)
        self.tokens_out += 1
        self.pending.append(token)
        new = self._decoder.decode(self._weights.piece(token))
        self.text += new
        if self._cursor is not None:
            try:
                self._cursor.feed(new)
            except MismatchError:  # rely on the grammar; stop forcing tokens
                self._cursor = None

    def _ended(self) -> bool:
        if self._cursor is not None and self._cursor.finished:
            self.finish = "stop"
        elif self.tokens_out >= self._cap:
            self.finish = "length"
        elif self.tokens_out >= self._looked + _LOOK_EVERY:
            self._looked = self.tokens_out
            if repeats(self.text):
                self.finish = "repetition"
        return self.finish is not None

    def _force(self) -> None:
        """Append the text that the grammar forces without running the model.

        The last forced token is left to the model unless the reply ends there: it may prefer a longer token.
        """
        while tokens := self._forced_tokens():
            if self._forced == "single":
                self._queue = tokens
                return
            for token in tokens:
                # llama.cpp aborts the process when it must accept a token that its grammar forbids
                if not self._choice.allows(self._grammar, token):
                    self._cursor = None
                    return
                self._write(token)
                if self._ended():
                    return

    def _forced_tokens(self) -> list[int]:
        if self._cursor is None or self._forced == "off" or self._queue or self._decoder.getstate()[0]:
            return []
        text = self._cursor.forced()
        tokens = self._weights.tokenise(text, own=False) if text else []
        if b"".join(map(self._weights.piece, tokens)) != text.encode("utf-8"):
            return []  # the tokenizer adds a space at the beginning of a text
        after = self._cursor.copy()
        after.feed(text)
        if not after.finished:
            tokens = tokens[:-1]
        return tokens[: max(0, self._cap - self.tokens_out)]

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
