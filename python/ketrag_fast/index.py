"""The facade: build an index, open it, ask it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ketrag_fast.carrying import Carrying
from ketrag_fast.config import Settings, names
from ketrag_fast.config.fields import LONGEST_SECONDS
from ketrag_fast.errors import InputError
from ketrag_fast.filters import Condition, condition_of, parsed
from ketrag_fast.memory import enough_memory
from ketrag_fast.progress import Limited
from ketrag_fast.querying import around
from ketrag_fast.querying.contexts import contexts_of
from ketrag_fast.querying.opened import Opened, load
from ketrag_fast.querying.preparing import Clock, prepare, question_text
from ketrag_fast.querying.reasons import Explainer
from ketrag_fast.querying.recipes import bounded, request_of, whole
from ketrag_fast.querying.reranking import replies_of
from ketrag_fast.querying.serving import chosen_mode
from ketrag_fast.storage.generation import current_number, stamp_of
from ketrag_fast.storage.layout import Layout
from ketrag_fast.types import Context

if TYPE_CHECKING:
    from ketrag_fast.asking.answer import OnText
    from ketrag_fast.backends.llms.protocol import LanguageModel
    from ketrag_fast.pipeline.ingest import Sources
    from ketrag_fast.pipeline.preview import Preview
    from ketrag_fast.progress import Callback, Event
    from ketrag_fast.types import Answer, BuildReport


Filter = str | Mapping[str, Any]

_OPEN_PARTS = 16
"""Indexes of some of the documents that stay open."""
_MOST_THREADS = 4096
_MOST_TOKENS = 1_000_000


def _condition(given: Filter | None) -> Condition | None:
    if given is None:
        return None
    return parsed(given) if isinstance(given, str) else condition_of(given)


class Index(Carrying):
    """An index on disk, opened for questions. Safe for many threads at once, and after a fork.

    Readers keep the generation they opened until `refresh`; a builder never disturbs them.
    """

    def __init__(self, path: Path, settings: Settings, report: BuildReport | None) -> None:
        self.path = path
        self.report = report
        self._given = settings
        self._allows: tuple[Filter, ...] = () if settings.allow is None else (settings.allow,)
        self._parts: dict[str, Index] = {}
        self._lent = False
        self._whole: tuple[int, tuple[int, int]] = (0, (0, 0))
        """Number and stamp of the generation that is open, or of which a part is."""
        self._now: Opened | None = self._load(None)

    def _load(self, before: Opened | None) -> Opened:
        """The generation that is current; of it, where not all may be seen, what may."""
        opened, folder = load(self.path, self._given, before), self.path
        self._whole = (opened.generation.number, opened.generation.stamp)
        if self._allows:
            from ketrag_fast.allowing import restricted

            for allow in self._allows:
                opened, folder = restricted(folder, opened, allow, self._given)
        self._folder = folder
        return opened

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

    @enough_memory()
    def update(
        self,
        *,
        add: Sources = (),
        remove: str | Sequence[str] = (),
        where: Filter | None = None,
        purge: bool = False,
        progress: Callback | Callable[[Event], bool | None] | None = None,
    ) -> BuildReport:
        """Adds and removes documents, publishes the index without them, and takes it up.

        `add` is what `build` takes; no other source is read again. `remove` are ids, or patterns of them
        (`*` also passes over `/`); documents whose metadata fits `where`, a filter as in `retrieve`, go, too.
        What is removed stays away though its source has it, until `add` names
        it or its source. Ids that no document has are among the report's failures. No language model is
        asked. The result is the index that a build over the documents that are there would give, to the
        byte. With `purge` no text, vector, reply or id of what was removed is left in any file; what was
        kept for models that the index does not use any more goes with it, as do reports of earlier builds.

        Raises as `build`, and IndexMissing.
        """
        from ketrag_fast.pipeline.planning import stages_for
        from ketrag_fast.pipeline.runner import build

        if self._allows:
            raise InputError(
                "an index of which not all may be seen cannot be changed", hint="open it without allow"
            )
        Layout(self.path).require()
        patterns = (remove,) if isinstance(remove, str) else tuple(remove)
        report = build(
            self.path,
            add,
            stages_for,
            self._given,
            progress=progress,
            only=True,
            remove=patterns,
            purge=purge,
            where=_condition(where),
        )
        self.refresh()
        return report

    @classmethod
    @enough_memory()
    def preview(
        cls,
        path: str | os.PathLike[str],
        *,
        add: Sources = (),
        remove: str | Sequence[str] = (),
        where: Filter | None = None,
        reread: bool = False,
        replace: bool = False,
        settings: Settings | None = None,
        progress: Callback | Callable[[Event], bool | None] | None = None,
    ) -> Preview:
        """What `update` would change, without doing it; with `reread` what `build` would, which reads all
        sources again, and with `replace` what a build with these alone would. Raises as they do.
        """
        from ketrag_fast.pipeline.preview import preview

        patterns = (remove,) if isinstance(remove, str) else tuple(remove)
        own = settings or Settings()
        return preview(
            Path(path),
            add,
            patterns,
            own,
            where=_condition(where),
            reread=reread,
            replace=replace,
            progress=progress,
        )

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
        """Takes up the generation published since, or the index that was put in this one's place; True if
        there was one.
        """
        layout, before, opened = Layout(self.path), self._whole, self._opened
        number = current_number(layout)
        if number is not None and (number, stamp_of(layout.generation(number))) == before:
            return False
        self._parts = {}
        self._now = self._load(opened)
        return self._whole != before

    def close(self) -> None:
        """Lets go of the mapped files and of the model. Using the index afterwards is an InputError."""
        now, self._now = self._now, None
        self._parts = {}
        if now is not None and not self._lent:
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

    @enough_memory()
    def allowed(self, allow: Filter, *, progress: Callback | None = None) -> Index:
        """This index for somebody who may see no other documents than those that `allow` fits.

        What it answers, lists, counts and says of itself is what an index of these documents alone would.
        That index is made when its documents are first asked for, in the folder of this one, and kept until
        the next generation; no model is asked. It cannot be changed, and serves as long as this one is open.
        Modes whose tables would need chunks that nobody has read are ModeUnavailable. Raises InputError where
        `allow` makes no sense, IndexLocked where the documents have changed since, ReadOnly, Cancelled.
        """
        from ketrag_fast.allowing import restricted

        key = repr(_condition(allow))
        known = self._parts.pop(key, None)
        if known is None:
            known = Index.__new__(Index)
            known.path, known.report, known._given = self.path, None, self._given
            known._allows, known._parts, known._lent = (*self._allows, allow), {}, True
            known._whole = self._whole
            known._now, known._folder = restricted(self._folder, self._opened, allow, self._given, progress)
        self._parts[key] = known
        while len(self._parts) > _OPEN_PARTS:
            self._parts.pop(list(self._parts)[0], None)  # noqa: RUF015 - one step, beside other threads
        return known

    def _part(self, allow: Filter, deadline: float | None, questions: int) -> tuple[Index, float | None]:
        """What may be seen, and what is then left of the time of each question."""
        clock = Clock(self._opened.settings.deadline if deadline is None else deadline, questions)

        def in_time(_: Event) -> bool:
            clock.left()  # raises where none is left
            return True

        return self.allowed(allow, progress=in_time), clock.each()

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
        filter: Filter | None = None,  # noqa: A002 - the name that people know
        allow: Filter | None = None,
    ) -> Context:
        """The context for one question: the passages that rank best and fit `budget` tokens.

        What is not given comes from the settings. `deadline` is in seconds. `filter` is over the documents'
        metadata, in words (`"year>=1990 and lang=en"`) or as a mapping (`{"year": {"$gte": 1990}}`): only
        passages of documents that fit are returned, and others may lead to them (`ketrag_fast.filters`).
        `allow`, of the same form, says which documents are there at all for whoever asks: see `allowed`.
        Raises EmptyQuery, ModeUnavailable, DeadlineExceeded, and InputError for a filter that makes no sense.
        """
        if allow is not None:
            part, left = self._part(allow, deadline, 1)
            own: dict[str, Any] = {"mode": mode, "budget": budget, "top": top, "explain": explain}
            return part.retrieve(question, **own, deadline=left, filter=filter)
        return self._context(
            question,
            True,
            mode=mode,
            budget=budget,
            top=top,
            explain=explain,
            deadline=deadline,
            filter=filter,
        )

    def _context(
        self,
        question: str,
        quoted: bool,
        *,
        mode: str | None = None,
        budget: int | None = None,
        top: int | None = None,
        explain: bool = False,
        deadline: float | None = None,
        filter: Filter | None = None,  # noqa: A002 - as `retrieve`
    ) -> Context:
        """`quoted`: with the best sentences around its units, where the settings ask for them."""
        settings = self._opened.settings
        budgets = [bounded(settings.budget if budget is None else budget)]
        texts = [question_text(question, None)]
        found = self._contexts(
            [question], texts, mode, budgets, top, explain, deadline, None, filter, quoted=quoted
        )
        return found[0][0]

    def retrieve_many(
        self,
        questions: Sequence[str],
        *,
        mode: str | None = None,
        budget: int | None = None,
        top: int | None = None,
        explain: bool = False,
        deadline: float | None = None,
        filter: Filter | None = None,  # noqa: A002 - the name that people know
        allow: Filter | None = None,
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
            filter=filter,
            allow=allow,
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
        filter: Filter | None = None,  # noqa: A002 - the name that people know
        allow: Filter | None = None,
        threads: int | None = None,
    ) -> list[list[Context]]:
        """For each question a context for each budget; the passages are ranked once for all of them.

        Only `keyword` is ranked for each budget, because its pool depends on it (KET-RAG, Alg. 4).
        """
        if allow is not None:
            part, left = self._part(allow, deadline, len(questions))
            own: dict[str, Any] = {"mode": mode, "budgets": budgets, "top": top, "explain": explain}
            return part.retrieve_budgets(questions, **own, deadline=left, filter=filter, threads=threads)
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
        return self._contexts(questions, texts, mode, sizes, top, explain, deadline, workers, filter)

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
        chosen_filter: Filter | None = None,
        *,
        quoted: bool = True,
    ) -> list[list[Context]]:
        """`threads` is None for one question on this thread."""
        opened = self._opened
        settings = opened.settings
        chosen = chosen_mode(opened, mode, self.path)
        most = settings.top if top is None else top
        surrounded = around.count(opened, chosen)
        if surrounded:
            most = surrounded if most is None else min(most, surrounded)
        clock = Clock(settings.deadline if deadline is None else deadline, len(texts))
        automatic = (settings.mode if mode is None else mode) == "auto"
        filtered = opened.filtered(settings.filter if chosen_filter is None else chosen_filter)
        request_of(settings, chosen, budgets, top=most)  # bad options are refused before a model is asked
        prepared = prepare(
            opened,
            texts,
            chosen,
            budgets,
            clock,
            top=most,
            automatic=automatic,
            filtered=filtered,
            threads=threads or 0,
        )
        replies = replies_of(opened, questions, chosen, budgets, prepared, clock, top=most, threads=threads)
        request = None
        if explain:
            each = clock.each()
            request = request_of(settings, chosen, budgets, top=most, deadline=each, mask=prepared.mask)
        found = []
        for at, (question, reply) in enumerate(zip(questions, replies, strict=True)):
            vector = None if prepared.vectors is None else prepared.vectors[at]
            why = request and Explainer(opened, request, question, prepared.texts[at], vector)
            found.append(contexts_of(opened, question, chosen, budgets, reply, why, prepared))
        if surrounded and quoted:
            limit = Limited(None, clock.left(), time.monotonic())
            found = [[around.quoted(opened, context, limit) for context in row] for row in found]
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
        on_context: Callable[[Context], bool | None] | None = None,
        kind: str | None = None,
        options: Sequence[str] = (),
        **retrieval: Any,
    ) -> Answer:
        """A language model's answer from the context of a question, with citations of its passages.

        `llm` is a spec (`llama-cpp:PATH.gguf`, `openai:MODEL@URL`) or an opened model; else the setting
        `writer`. Without one nobody is asked: the answer has a `reason` and the context. `tokens` and
        `seconds` bound the reply, and a `deadline` all of it: retrieval, the model's opening and its answer,
        which is then cut with a warning. `on_text` is given the answer piece by piece, and stops it by
        returning False; `on_context` is given the context before, and stops likewise. `kind` is "free",
        "yes-no" (the answer has a `decision`) or "choice" among `options` (it has a `ranking`). The other
        options are those of `retrieve`. With the setting `subgraphs` the model first summarises what the
        passages are tied to. Raises what `retrieve` does, and BackendMissing, BackendError,
        NetworkForbidden, ConfigError.
        """
        from ketrag_fast.asking.answer import SECONDS, TOKENS, unasked
        from ketrag_fast.asking.forms import form_of
        from ketrag_fast.querying.answering import answered

        most = TOKENS if tokens is None else tokens
        longest = SECONDS if seconds is None else seconds
        if not 0 < whole("tokens", most) <= _MOST_TOKENS:
            raise InputError(f"tokens must be from 1 to {_MOST_TOKENS:,}")
        if not isinstance(longest, (int, float)) or not 0 < longest <= LONGEST_SECONDS:
            raise InputError(f"seconds must be above 0 and at most {LONGEST_SECONDS:g}")
        deadline = retrieval.get("deadline")
        if retrieval.get("allow") is not None:
            part, left = self._part(retrieval.pop("allow"), deadline, 1)
            own: dict[str, Any] = {"llm": llm, "tokens": tokens, "seconds": seconds, "on_text": on_text}
            own |= {"on_context": on_context, "kind": kind, "options": options, **retrieval, "deadline": left}
            return part.ask(question, **own)
        retrieval.pop("allow", None)
        clock = Clock(self._opened.settings.deadline if deadline is None else deadline, 1)
        form = form_of(kind, options)
        chosen = (self._opened.settings.writer or "none") if llm is None else llm
        context = self._context(question, chosen == "none", **retrieval)
        if on_context is not None and on_context(context) is False:
            return unasked(context, "cancelled")
        if not context.passages or chosen == "none":
            return unasked(context, "no_model" if context.passages else None)
        return answered(
            self._opened, chosen, context, clock, tokens=most, seconds=longest, on_text=on_text, form=form
        )

    async def aask(self, question: str, **options: Any) -> Answer:
        """As `ask`, without blocking the event loop. `on_text` is called from another thread."""
        import asyncio

        return await asyncio.to_thread(lambda: self.ask(question, **options))
