"""What one worker holds, for all requests: indexes, threads, counters, bounds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from ketrag_fast.server.batching import Batcher
from ketrag_fast.server.kept import Kept
from ketrag_fast.server.metrics import Metrics
from ketrag_fast.server.options import ServerOptions
from ketrag_fast.server.problems import Problem
from ketrag_fast.server.replies import dumped
from ketrag_fast.server.served import Indexes, Served

_WHOLE: Final = b'"warnings":[]'
_EMBEDDED: Final = 32
_PLAIN: Final = 4


@dataclass(frozen=True)
class Asked:
    """What questions have in common that are put to the core together."""

    served: Served
    mode: str | None
    budget: int | None
    top: int | None
    explain: bool


class Service:
    """One worker's. `token` is what a request must show, if there is one."""

    def __init__(self, options: ServerOptions, token: str | None) -> None:
        self.options = options
        self.token = token
        self.indexes = Indexes(options)
        self.metrics = Metrics()
        self.ready = False
        self.stopping = False
        self.kept = Kept(options.cache)
        self.batcher: Batcher[Asked] = Batcher(
            _answers,
            threads=options.concurrency,
            largest=self._largest,
            queue=options.queue,
            on_batch=self.metrics.batches.observe,
        )
        self.slow = ThreadPoolExecutor(4, thread_name_prefix="ketrag-slow")
        """For statistics, graphs and documents: no question waits behind them."""
        self.writers = ThreadPoolExecutor(max(2, 2 * len(self.indexes)), thread_name_prefix="ketrag-answer")
        """For the answers of language models."""
        self.answers = 0
        """Answers that are made or wait."""

    def _largest(self, asked: Asked) -> int:
        if self.options.batch is not None:
            return self.options.batch
        return _EMBEDDED if asked.served.index.has_model else _PLAIN

    async def contexts(self, asked: Asked, questions: Sequence[str], seconds: float) -> list[bytes]:
        """The reply to each question; what is at hand is not made again."""
        generation = asked.served.index.generation
        made: list[bytes | None] = [self.kept.get((asked, generation, text)) for text in questions]
        new = [at for at, reply in enumerate(made) if reply is None]
        if len(new) < len(made):
            self.metrics.kept.inc(len(made) - len(new))
        if new:
            until = time.monotonic() + seconds
            futures = self.batcher.submit(asked, [questions[at] for at in new], until)
            self.metrics.waiting.set(self.batcher.waiting)
            try:
                async with asyncio.timeout(seconds):
                    replies = await asyncio.gather(*futures)
            except TimeoutError:
                raise Problem(504, "deadline", f"no answer within {seconds:g} s") from None
            finally:
                for future in futures:
                    future.cancel()
            for at, reply in zip(new, replies, strict=True):
                made[at] = reply
                # What had to do without something (a model, for a while) is not what is asked for later.
                if asked.served.index.generation == generation and _WHOLE in reply:
                    self.kept.add((asked, generation, questions[at]), reply, 4 * len(questions[at]) + 200)
        return [reply for reply in made if reply is not None]

    async def aside(self, call: Any, *given: Any) -> Any:
        """Runs a call on a thread that no question waits for."""
        return await asyncio.get_running_loop().run_in_executor(self.slow, call, *given)

    def close(self) -> None:
        """Waits for what runs, and lets go of everything."""
        self.batcher.close()
        self.slow.shutdown(wait=True, cancel_futures=True)
        self.writers.shutdown(wait=True, cancel_futures=True)
        self.indexes.close()


def _answers(asked: Asked, questions: Sequence[str], seconds: float) -> list[bytes]:
    """On a thread: the core ranks without the interpreter, so that these threads fill the processors."""
    found = asked.served.index.retrieve_many(
        questions,
        mode=asked.mode,
        budget=asked.budget,
        top=asked.top,
        explain=asked.explain,
        deadline=seconds,
        threads=1,
    )
    return [dumped(context.to_json()) for context in found]
