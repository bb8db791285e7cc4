"""Questions to an opened index: contexts for one or many, at one budget or several, and answers."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from ketrag_fast.base.config.fields import LONGEST_SECONDS
from ketrag_fast.base.memory import enough_memory
from ketrag_fast.base.progress import Limited
from ketrag_fast.errors import InputError
from ketrag_fast.index.carrying import Carrying
from ketrag_fast.query import neighbours as around
from ketrag_fast.query.contexts import contexts_of
from ketrag_fast.query.explanations import Explainer
from ketrag_fast.query.mode_choice import chosen_mode
from ketrag_fast.query.preparation import Clock, prepare, question_text
from ketrag_fast.query.recipes import check_budget, request_of, whole
from ketrag_fast.query.reranking import replies_of
from ketrag_fast.types import Context

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Callback, Event
    from ketrag_fast.models.llms.protocol import LanguageModel
    from ketrag_fast.query.answer.generation import OnText
    from ketrag_fast.types import Answer

Filter = str | Mapping[str, Any]

_MOST_THREADS = 4096
_MOST_TOKENS = 1_000_000


class Questions(Carrying):
    """The part of `Index` that is asked."""

    @abstractmethod
    def allowed(self, allow: Filter, *, progress: Callback | None = None) -> Self:
        """The index's own."""

    def _part(self, allow: Filter, deadline: float | None, questions: int) -> tuple[Self, float | None]:
        """What may be seen, and what is then left of the time of each question."""
        clock = Clock(self._opened.settings.deadline if deadline is None else deadline, questions)

        def in_time(_: Event) -> bool:
            clock.left()  # raises where none is left
            return True

        return self.allowed(allow, progress=in_time), clock.each()

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
        passages of documents that fit are returned, and others may lead to them (`ketrag_fast.base.filters`).
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
        """Return a context; `quoted` adds the best sentences around its units if the settings say so."""
        settings = self._opened.settings
        budgets = [check_budget(settings.budget if budget is None else budget)]
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
        sizes = [check_budget(budget) for budget in budgets]
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
        filtered = opened.filtered(settings.filter if chosen_filter is None else chosen_filter, clock.left)
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
            found = [
                [around.add_quoted_sentences(opened, context, limit) for context in row] for row in found
            ]
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

        `llm` is a spec (`llama-cpp:PATH.gguf`, `openai:MODEL@URL`) or an opened model; without it the
        setting `answer_llm` counts, then `llm`. If no model is set, the answer has a `reason` and the
        context. `tokens` and `seconds` bound the reply, and a `deadline` all of it: retrieval, loading the
        model and the answer, which is then cut with a warning. `on_text` is given the answer piece by piece,
        and stops it by returning False; `on_context` is given the context before, and stops likewise. `kind`
        is "free", "yes-no" (the answer has a `decision`) or "choice" among `options` (it has a `ranking`).
        The other options are those of `retrieve`. With the setting `subgraphs` the model first summarises
        what the passages are tied to. Raises what `retrieve` does, and BackendMissing, BackendError,
        NetworkForbidden, ConfigError.
        """
        from ketrag_fast.query.answer.forms import form_of
        from ketrag_fast.query.answer.generation import SECONDS, TOKENS, answer_without_model
        from ketrag_fast.query.answering import answer_with_model

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
        writer = self._opened.writer if llm is None else None
        chosen = (writer.spec if writer is not None else "none") if llm is None else llm
        context = self._context(question, chosen == "none", **retrieval)
        if on_context is not None and on_context(context) is False:
            return answer_without_model(context, "cancelled")
        if not context.passages or chosen == "none":
            return answer_without_model(context, "no_model" if context.passages else None)
        if writer is not None:
            writer.require_permission()
        return answer_with_model(
            self._opened, chosen, context, clock, tokens=most, seconds=longest, on_text=on_text, form=form
        )

    async def aask(self, question: str, **options: Any) -> Answer:
        """As `ask`, without blocking the event loop. `on_text` is called from another thread."""
        import asyncio

        return await asyncio.to_thread(lambda: self.ask(question, **options))
