"""The facade: build an index, open it, ask it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ketrag_fast import _core
from ketrag_fast.config import Settings, names
from ketrag_fast.errors import (
    BackendError,
    BackendMissing,
    ConfigError,
    EmptyQuery,
    IndexDamaged,
    InputError,
    ModeUnavailable,
    NetworkForbidden,
)
from ketrag_fast.explain import why
from ketrag_fast.hyde import Hyde, writer_of
from ketrag_fast.pipeline.known import reading_settings
from ketrag_fast.storage.generation import Generation, current_number, open_current
from ketrag_fast.storage.layout import Layout
from ketrag_fast.types import Context, Lazy, Passage, Section

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.asking.answer import Models, OnText
    from ketrag_fast.backends.ann.stored import StoredGraph
    from ketrag_fast.backends.embedders.questions import Questions
    from ketrag_fast.backends.llms.protocol import LanguageModel
    from ketrag_fast.pipeline.ingest import Sources
    from ketrag_fast.progress import Callback, Event
    from ketrag_fast.types import Answer, BuildReport, Entity

AUTO = ("walk", "fused", "bm25", "text")
"""What `auto` tries, best first: the order of the measured table (benches/coverage.py)."""


@dataclass(frozen=True)
class _Open:
    """One opened generation; replaced as a whole by `refresh`."""

    generation: Generation
    searcher: _core.Searcher
    settings: Settings
    missing: dict[str, str | None]
    questions: Questions | None
    hyde: Hyde | None
    graphs: Mapping[str, StoredGraph]
    """For the modes that search one list of vectors, where hnswlib made a graph of it."""


class Index:
    """An index on disk, opened for questions. Safe for many threads at once, and after a fork.

    Readers keep the generation they opened until `refresh`; a builder never disturbs them.
    """

    def __init__(self, path: Path, settings: Settings, report: BuildReport | None) -> None:
        self.path = path
        self.report = report
        self._asked = settings
        self._now: _Open | None = self._load()

    # ------------------------------------------------------------ life

    @classmethod
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
        from ketrag_fast.pipeline.runner import build
        from ketrag_fast.stages import STAGES

        asked = settings if settings is not None else Settings()
        report = build(
            path,
            sources,
            STAGES,
            asked,
            progress=progress,
            replace=replace,
            rebuild=rebuild,
            partial=partial,
        )
        return cls(Path(path), asked, report)

    @classmethod
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
        from ketrag_fast.pipeline.reembed import reembed
        from ketrag_fast.stages import STAGES

        given = settings.given if settings is not None else {}
        kept = {"embedder", *names("query", "run")}
        asked = Settings(**{name: value for name, value in given.items() if name in kept})
        if embedder is not None:
            asked = asked.having(embedder=embedder)
        report = reembed(path, STAGES, asked, progress=progress)
        return cls(Path(path), asked, report)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, settings: Settings | None = None) -> Index:
        """Opens a built index; its arrays are mapped and shared with other processes.

        Raises IndexMissing, IndexDamaged (checksums are compared unless `settings.verify` is "sizes"),
        IndexIncompatible.
        """
        return cls(Path(path), settings if settings is not None else Settings(), None)

    def refresh(self) -> bool:
        """Takes up the generation published since; True if there was a newer one."""
        before = self._opened.generation.number
        if current_number(Layout(self.path)) == before:
            return False
        self._now = self._load()
        return self._opened.generation.number != before

    def close(self) -> None:
        """Lets go of the mapped files and of the model. Using the index afterwards is an InputError."""
        now, self._now = self._now, None
        if now is not None and now.questions is not None:
            now.questions.close()
        if now is not None and now.hyde is not None:
            now.hyde.close()
        models = self.__dict__.pop("_asking", None)
        if models is not None:
            models.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _load(self) -> _Open:
        generation = open_current(Layout(self.path), full=self._asked.verify == "full")
        settings = reading_settings(self._asked, generation)
        files = {
            f"{stage}.{name}": str(file)
            for stage, arrays in generation.stages.items()
            for name, file in arrays.arrays()
        }
        built = generation.manifest.settings
        if not {"encoding", "language"} <= built.keys():
            raise IndexDamaged(
                f"the manifest of {generation.folder} does not say how the index was built",
                hint="build it anew: ketrag index --rebuild",
            )
        searcher = _core.Searcher(files, str(built["encoding"]), str(built["language"]))
        _ = generation.stages["units"]["sent_title"]  # for `stats`, while the file is surely there
        questions = _questions(generation, settings)
        writer, graphs = writer_of(settings), _graphs(generation)
        return _Open(generation, searcher, settings, searcher.missing(), questions, writer, graphs)

    @property
    def _opened(self) -> _Open:
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

    def stats(self) -> dict[str, Any]:
        """What the index holds, as `ketrag stats --json` prints it."""
        from ketrag_fast.statistics import statistics

        return statistics(self._opened.generation, self.path, self.modes)

    def entity(self, name: str) -> Entity:
        """An entity of the skeleton with its relations and the sentences that they come from.

        Case does not matter. Raises InputError with near names where there is none, ModeUnavailable where
        the index has no skeleton.
        """
        from ketrag_fast.inspection import Skeleton

        return Skeleton(self._opened.generation).entity(name)

    def arrays(self) -> dict[str, Mapping[str, NDArray[Any]]]:
        """The arrays of each stage, mapped and read-only, for those who look at graphs themselves."""
        return dict(self._opened.generation.stages)

    def writer(self) -> dict[str, Any] | None:
        """Which model writes the passages of mode hyde, with its fingerprint and the hash of the prompt."""
        hyde = self._opened.hyde
        return None if hyde is None else hyde.about()

    # ------------------------------------------------------------ questions

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
        opened = self._opened
        chosen = _chosen(opened, mode)
        options = _options(opened.settings, top, deadline)
        budgets = [_budget(opened.settings.budget if budget is None else budget)]
        text = _question(question, None)
        asked = _vectors(opened, [text], chosen, wanted=opened.settings.mode if mode is None else mode)
        asked = _near(opened, asked, chosen, budgets, options["top"])
        vector = None if asked.vectors is None else asked.vectors[0]
        if asked.near is not None:
            options["near"] = asked.near[0]
        reply = opened.searcher.answer(asked.texts[0], vector, _ranking(chosen), budgets, **options)
        return _contexts(opened, question, chosen, budgets, reply, explain, asked)[0]

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
        opened = self._opened
        chosen = _chosen(opened, mode)
        options = _options(opened.settings, top, deadline)
        sizes = [_budget(budget) for budget in budgets]
        texts = [_question(question, i) for i, question in enumerate(questions)]
        workers = opened.settings.threads if threads is None else threads
        asked = _vectors(opened, texts, chosen, wanted=opened.settings.mode if mode is None else mode)
        asked = _near(opened, asked, chosen, sizes, options["top"], workers)
        if asked.near is not None:
            options["near"] = asked.near
        replies = opened.searcher.answer_many(
            asked.texts, asked.vectors, _ranking(chosen), sizes, threads=workers, **options
        )
        return [
            _contexts(opened, question, chosen, sizes, reply, explain, asked)
            for question, reply in zip(questions, replies, strict=True)
        ]

    async def aretrieve(self, question: str, **options: Any) -> Context:
        """As `retrieve`, without blocking the event loop."""
        import asyncio  # who calls this has it already; the command does without

        return await asyncio.to_thread(lambda: self.retrieve(question, **options))

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
        `seconds` bound the reply; `on_text` is given the answer piece by piece, and stops it by returning
        False. The other options are those of `retrieve`. Raises what `retrieve` does, and BackendMissing,
        BackendError, NetworkForbidden, ConfigError.
        """
        from ketrag_fast.asking.answer import SECONDS, TOKENS, answer, unasked

        context = self.retrieve(question, **retrieval)
        chosen = (self._opened.settings.writer or "none") if llm is None else llm
        if not context.passages or chosen == "none":
            return unasked(context, "no_model" if context.passages else None)
        most = TOKENS if tokens is None else tokens
        longest = SECONDS if seconds is None else seconds
        if not isinstance(chosen, str):
            return answer(context, chosen, tokens=most, seconds=longest, on_text=on_text)
        return self._asking.answer(context, chosen, tokens=most, seconds=longest, on_text=on_text)

    async def aask(self, question: str, **options: Any) -> Answer:
        """As `ask`, without blocking the event loop. `on_text` is called from another thread."""
        import asyncio

        return await asyncio.to_thread(lambda: self.ask(question, **options))

    @cached_property
    def _asking(self) -> Models:
        """The models that were asked, kept open: loading one takes longer than an answer."""
        from ketrag_fast.asking.answer import Models

        return Models(self._asked)


_ENDLESS = 2**62
"""More tokens or passages than there are anywhere; twice as many still fit the core's numbers."""


def _question(text: str, place: int | None) -> str:
    if not text.strip():
        where = "the question" if place is None else f"question {place}"
        raise EmptyQuery(f"{where} is empty", hint="ask something: a word is enough")
    # A lone surrogate (a byte that was no text) cannot be UTF-8; it is no word either.
    return text.encode("utf-8", "replace").decode("utf-8")


def _budget(tokens: int) -> int:
    if tokens < 0:
        raise ConfigError(f"budget: {tokens} is negative", hint="give a number of tokens from 0 up")
    return min(tokens, _ENDLESS)


def _chosen(opened: _Open, mode: str | None) -> str:
    wanted = opened.settings.mode if mode is None else mode
    if wanted == "auto":
        serving = [name for name in AUTO if opened.missing.get(name, "") is None]
        if serving:
            return serving[0]
        raise ModeUnavailable("this index serves no mode", hint="build it anew with `ketrag index --rebuild`")
    if wanted == "hyde":
        _require_writer(opened)
        return wanted
    if wanted not in opened.missing:
        known = ", ".join(["auto", *opened.missing])
        raise ConfigError(f"mode: there is no mode {wanted!r}", hint=f"the modes are {known}")
    lacking = opened.missing[wanted]
    if lacking is not None:
        raise ModeUnavailable(
            f"mode {wanted} needs {lacking}, which this index does not hold",
            hint="build it with a system that has it; `ketrag stats` lists what is there",
        )
    return wanted


def _ranking(chosen: str) -> str:
    """The core's mode: HyDE is a ranking by vectors, of another text."""
    return "text" if chosen == "hyde" else chosen


def _require_writer(opened: _Open) -> None:
    lacking = opened.missing["text"]
    if lacking is not None:
        raise ModeUnavailable(f"mode hyde needs {lacking}, which this index does not hold")
    if opened.hyde is None:
        raise ModeUnavailable(
            "mode hyde needs a language model that writes a passage for each question",
            hint="name one: --llm llama-cpp:PATH.gguf or openai:MODEL@URL",
        )


def _options(settings: Settings, top: int | None, deadline: float | None) -> dict[str, Any]:
    if top is not None and top < 0:
        raise ConfigError(f"top: {top} is negative")
    most = settings.top if top is None else top
    return {
        "top": None if most is None else min(most, _ENDLESS),
        "skip": settings.fill_policy == "skip_and_continue",
        "truncate": settings.oversize_policy == "truncate",
        "deadline": settings.deadline if deadline is None else deadline,
        "most_seeds": settings.seed_keywords,
        "published": settings.row_count == "whole",
        "kg_share": settings.kg_share,
        "rollover": settings.rollover,
    }


def _contexts(
    opened: _Open,
    question: str,
    mode: str,
    budgets: Sequence[int],
    reply: _core._Reply,
    explain: bool,
    asked: _Asked,
) -> list[Context]:
    reason, printed, milliseconds, no_skeleton = reply
    warnings = (*asked.warnings, _NO_SKELETON) if no_skeleton else asked.warnings
    contexts = []
    for budget, row in zip(budgets, printed, strict=True):
        text, tokens = row[0], row[1]

        def passages(row: _core._Printed = row) -> Sequence[Passage]:
            found = _passages(opened, mode, row)
            return [replace(p, why=why(question, p)) for p in found] if explain else found

        nothing = None if text else reason or "budget_too_small"
        if budget == 0 and nothing == "no_match":  # no budget says nothing about the question
            nothing = "budget_too_small"
        contexts.append(
            Context(
                question=question,
                mode=mode,
                budget=budget,
                tokens=tokens,
                text=text,
                passages=Lazy(passages),
                sections=_sections(text, row[6]),
                reason=nothing,
                timings_ms={"embed": asked.milliseconds, "search": milliseconds},
                generation=opened.generation.number,
                warnings=warnings,
            )
        )
    return contexts


_NO_SKELETON = "the skeleton is empty: its share of the budget went to the texts"


def _sections(text: str, tables: list[_core._Table]) -> tuple[Section, ...]:
    if len(tables) == 1:
        return (Section(tables[0][0], tables[0][2], text),)
    whole = text.encode()  # the core counts bytes
    return tuple(Section(name, tokens, whole[a:b].decode()) for name, _, tokens, a, b in tables)


@dataclass(frozen=True)
class _Asked:
    """The texts that are ranked by, their vectors if the index has a model and the mode uses them, and what
    making these took each.
    """

    texts: list[str]
    vectors: NDArray[np.float32] | None = None
    milliseconds: float = 0.0
    warnings: tuple[str, ...] = ()
    near: NDArray[np.uint32] | None = None
    """Ids that hnswlib found near each vector; None where all are looked at."""


def _questions(generation: Generation, settings: Settings) -> Questions | None:
    """Who makes questions' vectors: nobody but the core itself where the index has no model."""
    stored = generation.manifest.models.get("embedder")
    if stored is None and settings.embedder == "builtin":
        return None
    from ketrag_fast.backends.embedders.questions import Questions

    return Questions(stored, settings)


def _vectors(opened: _Open, texts: list[str], chosen: str, wanted: str) -> _Asked:
    told: tuple[str, ...] = ()
    writing = 0.0
    if chosen == "hyde" and opened.hyde is not None and texts:
        started = time.perf_counter()
        texts, told = opened.hyde.passages(texts)
        writing = (time.perf_counter() - started) * 1000 / len(texts)
    if opened.questions is None or chosen == "bm25" or not texts:
        return _Asked(texts, None, writing, told)
    try:
        opened.questions.load()  # once for an opened index, so no part of what a question takes
        started = time.perf_counter()
        vectors = opened.questions.vectors(texts)
    except (BackendMissing, BackendError, NetworkForbidden) as error:
        if wanted != "auto" or chosen != "walk":
            raise
        return _Asked(texts, warnings=(f"without vectors: {error}",))
    taken = (time.perf_counter() - started) * 1000 / len(texts)
    return _Asked(texts, vectors, writing + taken, told)


_GRAPHS = {
    "text": ("unit_search", "vectors", "unit_vectors"),
    "keyword": ("keyword_search", "keywords", "vectors"),
}


def _graphs(generation: Generation) -> dict[str, StoredGraph]:
    found: dict[str, StoredGraph] = {}
    for mode, (stage, of, array) in _GRAPHS.items():
        arrays = generation.stages.get(stage)
        if arrays is None or not len(arrays):
            continue
        from ketrag_fast.backends.ann.stored import GRAPH, StoredGraph, record_of

        record = record_of(arrays)
        if record is not None:
            vectors = partial(generation.stages[of].__getitem__, array)
            found[mode] = StoredGraph(arrays.path(GRAPH), record, vectors)
    return found


def _near(
    opened: _Open, asked: _Asked, chosen: str, budgets: Sequence[int], top: int | None, threads: int = 0
) -> _Asked:
    """Adds what hnswlib proposes. It may propose too little: the core then looks at all vectors."""
    ranking = _ranking(chosen)
    graph = opened.graphs.get(ranking)
    if graph is None or asked.vectors is None or not budgets:
        return asked
    rows = max(_LEAST_RANKED, max(budgets) // _USUAL_TOKENS)
    if ranking == "text":
        rows = min(rows, len(opened.searcher)) if top is None else min(rows, top)
        rows = 2 * max(rows, 1)
    else:
        rows = _SEEDS
    near = graph.candidates(asked.vectors, rows, threads)
    words = asked.warnings if graph.missing is None else (*asked.warnings, graph.missing)
    return replace(asked, near=near, warnings=words)


_LEAST_RANKED, _USUAL_TOKENS = 64, 40
"""As the core ranks at first (rust/engine/answer.rs)."""
_SEEDS = 256
"""Keywords that a budget of 12,000 tokens uses."""


def _passages(opened: _Open, mode: str, row: _core._Printed) -> list[Passage]:
    _, _, units, tokens, spans, scores, tables = row
    split = opened.generation.manifest.settings.get("split_level", 0) != 0
    kind = "subchunk" if split else "chunk"
    # A row belongs to the last table that begins before it.
    channels = [next(t[1] for t in reversed(tables) if t[3] <= start) for start, _ in spans]
    places = opened.searcher.places(units.tolist(), [end - start for start, end in spans])
    return [
        Passage(
            rank=rank,
            kind=kind,
            unit=unit,
            chunk=chunk,
            document=document,
            title=title,
            start=start,
            end=end,
            score=score,
            tokens=cost,
            channel=mode if len(tables) == 1 and tables[0][1] == _ranking(mode) else channel,
            text=text,
        )
        for rank, (unit, cost, score, channel, (chunk, document, title, start, end, text)) in enumerate(
            zip(units.tolist(), tokens.tolist(), scores.tolist(), channels, places, strict=True), 1
        )
    ]
