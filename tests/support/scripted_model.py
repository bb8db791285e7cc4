"""A language model that says what a test wants, by the protocol: what no real model can be made to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ketrag_fast.base.config import Settings
from ketrag_fast.models.extraction.chunk_reader import Chunk, ChunkReader, prompt_options
from ketrag_fast.models.extraction.prompt import PromptOptions, reply_schema
from ketrag_fast.models.llms.protocol import Cancel, Limits, ModelIdentity, ModelReply, Prompt

Say = Callable[[Prompt], ModelReply | str]


class Scripted:
    """`slots` prompts are read ahead, and answered last first, as slots of a server may do."""

    def __init__(self, say: Say, slots: int = 1, room: Callable[[Prompt], int | None] | None = None) -> None:
        self.asked: list[Prompt] = []
        self.limits: list[Limits] = []
        self.closed = False
        self._say = say
        self._slots = slots
        self._room = room

    @property
    def identity(self) -> ModelIdentity:
        return ModelIdentity("scripted", "scripted 1", 4096)

    def count(self, text: str) -> int:
        return len(text.split())

    def room(self, prompt: Prompt) -> int | None:
        return None if self._room is None else self._room(prompt)

    def replies(
        self, prompts: Iterable[Prompt], limits: Limits, cancel: Cancel | None = None
    ) -> Iterator[ModelReply]:
        waiting: list[Prompt] = []
        source = iter(prompts)
        while True:
            while len(waiting) < self._slots and (prompt := next(source, None)) is not None:
                waiting.append(prompt)
            if not waiting:
                return
            prompt = waiting.pop()
            if cancel is not None and cancel():
                yield ModelReply(prompt.number, "", "cancelled")
                return
            self.asked.append(prompt)
            self.limits.append(limits)
            said = self._say(prompt)
            if isinstance(said, str):
                said = ModelReply(prompt.number, said, "stop", tokens_in=100, tokens_out=10, tokens_shared=70)
            yield replace(said, number=prompt.number)

    def stream(
        self, prompt: Prompt, limits: Limits, cancel: Cancel | None = None
    ) -> Iterator[str | ModelReply]:
        raise NotImplementedError

    def close(self) -> None:
        self.closed = True


def reader(model: Scripted, **settings: object) -> ChunkReader:
    """A reader whose model is scripted."""
    options: PromptOptions = prompt_options(Settings(**settings))
    limits = Limits(64, None, reply_schema(options))
    about = model.identity.to_json()
    return ChunkReader("scripted", "key", about, options, limits, grounded=True, model=model)


def chunks(count: int) -> list[Chunk]:
    """Chunks with a name each: `Name 3 is here.`"""
    return [Chunk(n, f"d{n}", 0, 20, "", f"Anna {_word(n)} met Bert {_word(n)} here.") for n in range(count)]


def good(prompt: Prompt) -> str:
    """The reply that names both people of a chunk."""
    body = prompt.text.split("Anna ", 1)[1].split(" ", 1)[0]
    a, b = f"Anna {body}", f"Bert {body}"
    return f'{{"e":[["{a}","person","{a} met {b}."],["{b}","person",""]],"r":[["{a}","{b}","met",5]]}}'


def _word(number: int) -> str:
    return "Q" + "".join("abcdefghij"[int(digit)] for digit in str(number))
