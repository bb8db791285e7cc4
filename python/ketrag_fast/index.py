"""The facade: build an index, open it, ask it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ketrag_fast.config import Settings, names
from ketrag_fast.config.fields import LONGEST_SECONDS
from ketrag_fast.errors import InputError, ModeUnavailable
from ketrag_fast.memory import enough_memory
from ketrag_fast.querying.contexts import contexts_of
from ketrag_fast.querying.opened import Opened, load
from ketrag_fast.querying.preparing import Clock, prepare, question_text
from ketrag_fast.querying.reasons import Explainer
from ketrag_fast.querying.recipes import bounded, request_of, whole
from ketrag_fast.querying.reranking import replies_of
from ketrag_fast.querying.serving import chosen_mode
from ketrag_fast.storage.generation import current_number
from ketrag_fast.storage.layout import Layout
from ketrag_fast.types import Context, Entity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.asking.answer import OnText
    from ketrag_fast.backends.llms.protocol import LanguageModel
    from ketrag_fast.declarations.system import Node, Told, Trained
    from ketrag_fast.pipeline.ingest import Sources
    from ketrag_fast.progress import Callback, Event
    from ketrag_fast.types import Answer, BuildReport


_MOST_THREADS = 4096
_MOST_TOKENS = 1_000_000


class Index:
    """An index on disk, opened for questions. Safe for many threads at once, and after a fork.

    Readers keep the generation they opened until `refresh`; a builder never disturbs them.
    """

    def __init__(self, path: Path, settings: Settings, report: BuildReport | None) -> None:
        self.path = path
        self.report = report
        self._given = settings
        self._now: Opened | None = load(self.path, self._given)

    # ------------------------------------------------------------ life

    @classmethod
    @enough_memory()
    def build(
        cls,
        sources: Sources,
        path: str | os.PathLike[str],
        *,
        settings: Settings | None = None,
        progress: Callback | Callable[[Event], bool | None] | None = None,
        replace: bool = False,
        rebuild: bool = False,
        partial: bool = False,
    ) -> Index:
        """Builds the index at `path`, or brings it up to date, and opens it.

        `sources`: a path, a glob, an iterable of these, of `Document`s, or of both. Sources accumulate in
        the index; `replace` makes these the only ones. What has not changed is not done again; `rebuild`
        does everything anew, and is needed for another cutting of units (for another embedder there is
        `reembed`). A build that was stopped or killed goes on when called again; with `partial` it asks no
        language model, and publishes what the last one has read so far. `.report` says what was done.

        Raises Cancelled when `progress` returned False, DocumentError, ConfigError, IndexLocked,
        StorageFull, ReadOnly, ModelMismatch.
        """
        from ketrag_fast.pipeline.planning import stages_for
        from ketrag_fast.pipeline.runner import build

        asked = settings if settings is not None else Settings()
        report = build(
            path,
            sources,
            stages_for,
            asked,
            progress=progress,
            replace=replace,
            rebuild=rebuild,
            partial=partial,
        )
        return cls(Path(path), asked, report)

    @classmethod
    @enough_memory()
    def reembed(
        cls,
        path: str | os.PathLike[str],
        embedder: str | None = None,
        *,
        settings: Settings | None = None,
        progress: Callback | Callable[[Event], bool | None] | None = None,
    ) -> Index:
        """Gives a built index the vectors of another model, and opens it; `.report` says what was done.

        The second set of vectors is made beside the first, from the documents that the index holds, and
        published at once: readers keep the old generation until they `refresh`. Stopped or killed, the
        old one serves, and what was embedded is kept for the next call. With no `embedder` the index's
        own is used again; nothing is done unless it gives other vectors than before.

        Raises as `build`, and IndexMissing.
        """
        from ketrag_fast.pipeline.planning import stages_for
        from ketrag_fast.pipeline.reembed import reembed

        given = settings.given if settings is not None else {}
        kept = {"embedder", *names("query", "run")}
        asked = Settings(**{name: value for name, value in given.items() if name in kept})
        if embedder is not None:
            asked = asked.having(embedder=embedder)
        report = reembed(path, stages_for, asked, progress=progress)
        return cls(Path(path), asked, report)

    @classmethod
    @enough_memory()
    def open(cls, path: str | os.PathLike[str], *, settings: Settings | None = None) -> Index:
        """Opens a built index; its arrays are mapped and shared with other processes.

        Raises IndexMissing, IndexDamaged (checksums are compared unless `settings.verify` is "sizes"),
        IndexIncompatible.
        """
        return cls(Path(path), settings if settings is not None else Settings(), None)

    @enough_memory()
    def refresh(self) -> bool:
        """Takes up the generation published since; True if there was a newer one."""
        before = self._opened.generation.number
        if current_number(Layout(self.path)) == before:
            return False
        self._now = load(self.path, self._given, self._opened)
        return self._opened.generation.number != before

    def close(self) -> None:
        """Lets go of the mapped files and of the model. Using the index afterwards is an InputError."""
        now, self._now = self._now, None
        if now is not None:
            now.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _opened(self) -> Opened:
        now = self._now
        if now is None:
            raise InputError("the index is closed", hint="open it again with Index.open")
        return now

    # ------------------------------------------------------------ facts

    @property
    def generation(self) -> int:
        """The number of the generation that answers."""
        return self._opened.generation.number

    @property
    def digest(self) -> str:
        """A hash of the index's content, equal for equal builds."""
        return self._opened.generation.manifest.digest

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that this index can serve."""
        return tuple(mode for mode, missing in self._opened.missing.items() if missing is None)

    @enough_memory()
    def stats(self) -> dict[str, Any]:
        """What the index holds, as `ketrag stats --json` prints it."""
        from ketrag_fast.statistics import statistics

        return statistics(self._opened.generation, self.path, self.modes)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the index's graphs name: entities of a skeleton, concepts, ..."""
        return tuple(one.WHAT for one in self._opened.inspectors)

    @enough_memory()
    def node(self, name: str, kind: str | None = None) -> Node:
        """What the index's graphs know under a name (an entity of the skeleton, ...). Case does not matter.

        The first of `kinds` that has the name answers, or `kind` alone. Raises InputError with near
        names where there is none, ModeUnavailable where no graph (of this kind) is there.
        """
        inspectors = self._opened.inspectors
        if not inspectors:
            raise ModeUnavailable(
                "this index has no graph of named things",
                hint="build a skeleton with `ketrag index --llm SPEC` (heuristic needs no model), or "
                "concepts with `--modes auto,concepts`",
            )
        if kind is not None:
            inspectors = [one for one in inspectors if kind == one.WHAT]
            if not inspectors:
                raise ModeUnavailable(
                    f"no graph of this index has nodes of kind {kind!r}",
                    hint=f"it has: {', '.join(self.kinds)}",
                )
        found = next((node for one in inspectors if (node := one.find(name)) is not None), None)
        if found is not None:
            return found
        near = dict.fromkeys(other for one in inspectors for other in one.near(name))
        what = " or ".join(one.WHAT for one in inspectors)
        hint = f"did you mean {', '.join(near)}?" if near else "and none has a name that is near"
        raise InputError(f"there is no {what} {name!r}", hint=hint)

    def entity(self, name: str) -> Entity:
        """An entity of the skeleton with its relations and the sentences that they come from; as `node`."""
        found = self.node(name, "entity")
        if not isinstance(found, Entity):
            raise InputError(f"{name!r} is no entity of a skeleton")
        return found

    @enough_memory()
    def arrays(self) -> dict[str, Mapping[str, NDArray[Any]]]:
        """The arrays of each stage, mapped and read-only, for those who look at graphs themselves."""
        return dict(self._opened.generation.stages)

    def train(
        self,
        system: str,
        questions: Sequence[tuple[str, Collection[str]]],
        out: str | os.PathLike[str],
        *,
        share: float = 1.0,
        told: Told | None = None,
        **options: Any,
    ) -> Trained:
        """Trains a system on (question, ids of the documents that answer it), and writes weights to `out`.

        The index stays as it is. `share` of the questions are drawn by `seed`; `told` is called after each
        epoch with (epoch, of, loss, Hit@1 of those kept apart) and stops it by returning False. Other options
        are the system's own (of cg-rag: epochs, rate, hidden, heads, ...). Raises ConfigError, InputError,
        ModeUnavailable, BackendMissing, Cancelled.
        """
        from ketrag_fast.querying.training import train

        return train(self._opened, system, questions, Path(out), share, told, options)

    def writer(self) -> dict[str, Any] | None:
        """Which model writes the passages of mode hyde, with its fingerprint and the hash of the prompt."""
        writer = self._opened.writer
        return None if writer is None else writer.about()

    # ------------------------------------------------------------ questions

    @enough_memory()
    def retrieve(
        self,
        question: str,
        *,
        mode: str | None = None,
        budget: int | None = None,
        top: int | None = None,
        explain: bool = False,
        deadline: float | None = None,
    ) -> Context:
        """The context for one question: the passages that rank best and fit `budget` tokens.

        What is not given comes from the settings. `deadline` is in seconds. Raises EmptyQuery,
        ModeUnavailable, DeadlineExceeded.
        """
        settings = self._opened.settings
        budgets = [bounded(settings.budget if budget is None else budget)]
        texts = [question_text(question, None)]
        return self._contexts([question], texts, mode, budgets, top, explain, deadline, None)[0][0]

    def retrieve_many(
        self,
        questions: Sequence[str],
        *,
        mode: str | None = None,
        budget: int | None = None,
        top: int | None = None,
        explain: bool = False,
        deadline: float | None = None,
        threads: int | None = None,
    ) -> list[Context]:
        """The contexts for many questions, in their order, over `threads` threads."""
        budgets = [self._opened.settings.budget if budget is None else budget]
        found = self.retrieve_budgets(
            questions,
            mode=mode,
            budgets=budgets,
            top=top,
            explain=explain,
            deadline=deadline,
            threads=threads,
        )
        return [contexts[0] for contexts in found]

    @enough_memory()
    def retrieve_budgets(
        self,
        questions: Sequence[str],
        *,
        mode: str | None = None,
        budgets: Sequence[int],
        top: int | None = None,
        explain: bool = False,
        deadline: float | None = None,
        threads: int | None = None,
    ) -> list[list[Context]]:
        """For each question a context for each budget; the passages are ranked once for all of them.

        Only `keyword` is ranked for each budget, because its pool depends on it (KET-RAG, Alg. 4).
        """
        sizes = [bounded(budget) for budget in budgets]
        if isinstance(questions, (str, bytes)):
            raise InputError(
                "one text was given where a list of questions is due",
                hint="retrieve_many([TEXT]), or retrieve(TEXT)",
            )
        texts = [question_text(question, i) for i, question in enumerate(questions)]
        workers = self._opened.settings.threads if threads is None else threads
        if not 0 <= whole("threads", workers) <= _MOST_THREADS:
            raise InputError(f"threads must be from 0 to {_MOST_THREADS}")
        return self._contexts(questions, texts, mode, sizes, top, explain, deadline, workers)

    def _contexts(
        self,
        questions: Sequence[str],
        texts: list[str],
        mode: str | None,
        budgets: list[int],
        top: int | None,
        explain: bool,
        deadline: float | None,
        threads: int | None,
    ) -> list[list[Context]]:
        """`threads` is None for one question on this thread."""
        opened = self._opened
        settings = opened.settings
        chosen = chosen_mode(opened, mode, self.path)
        most = settings.top if top is None else top
        clock = Clock(settings.deadline if deadline is None else deadline, len(texts))
        automatic = (settings.mode if mode is None else mode) == "auto"
        request_of(settings, chosen, budgets, top=most)  # bad options are refused before a model is asked
        prepared = prepare(
            opened, texts, chosen, budgets, clock, top=most, automatic=automatic, threads=threads or 0
        )
        replies = replies_of(opened, questions, chosen, budgets, prepared, clock, top=most, threads=threads)
        request = request_of(settings, chosen, budgets, top=most, deadline=clock.each()) if explain else None
        found = []
        for at, (question, reply) in enumerate(zip(questions, replies, strict=True)):
            vector = None if prepared.vectors is None else prepared.vectors[at]
            why = request and Explainer(opened, request, question, prepared.texts[at], vector)
            found.append(contexts_of(opened, question, chosen, budgets, reply, why, prepared))
        return found

    async def aretrieve(self, question: str, **options: Any) -> Context:
        """As `retrieve`, without blocking the event loop."""
        import asyncio  # who calls this has it already; the command does without

        return await asyncio.to_thread(lambda: self.retrieve(question, **options))

    @enough_memory()
    def ask(
        self,
        question: str,
        *,
        llm: str | LanguageModel | None = None,
        tokens: int | None = None,
        seconds: float | None = None,
        on_text: OnText | None = None,
        **retrieval: Any,
    ) -> Answer:
        """A language model's answer from the context of a question, with citations of its passages.

        `llm` is a spec (`llama-cpp:PATH.gguf`, `openai:MODEL@URL`) or an opened model; else the setting
        `writer`. Without one nobody is asked: the answer has a `reason` and the context. `tokens` and
        `seconds` bound the reply, and a `deadline` all of it: retrieval, the model's opening and its answer,
        which is then cut with a warning. `on_text` is given the answer piece by piece, and stops it by
        returning False. The other options are those of `retrieve`. Raises what `retrieve` does, and
        BackendMissing, BackendError, NetworkForbidden, ConfigError.
        """
        from ketrag_fast.asking.answer import SECONDS, TOKENS, answer, answer_by, unasked

        most = TOKENS if tokens is None else tokens
        longest = SECONDS if seconds is None else seconds
        if not 0 < whole("tokens", most) <= _MOST_TOKENS:
            raise InputError(f"tokens must be from 1 to {_MOST_TOKENS:,}")
        if not isinstance(longest, (int, float)) or not 0 < longest <= LONGEST_SECONDS:
            raise InputError(f"seconds must be above 0 and at most {LONGEST_SECONDS:g}")
        deadline = retrieval.get("deadline")
        clock = Clock(self._opened.settings.deadline if deadline is None else deadline, 1)
        context = self.retrieve(question, **retrieval)
        chosen = (self._opened.settings.writer or "none") if llm is None else llm
        if not context.passages or chosen == "none":
            return unasked(context, "no_model" if context.passages else None)
        if not isinstance(chosen, str):
            return answer(
                context, chosen, tokens=most, seconds=longest, deadline=clock.left(), on_text=on_text
            )
        return answer_by(
            self._opened.models,
            chosen,
            context,
            tokens=most,
            seconds=longest,
            deadline=clock.left(),
            on_text=on_text,
        )

    async def aask(self, question: str, **options: Any) -> Answer:
        """As `ask`, without blocking the event loop. `on_text` is called from another thread."""
        import asyncio

        return await asyncio.to_thread(lambda: self.ask(question, **options))
