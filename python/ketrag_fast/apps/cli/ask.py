"""`ketrag ask QUESTION`: answer from the index, with numbered citations."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import (
    EMBEDDER,
    FRESHNESS,
    Command,
    answering,
    argument,
    declare_literal,
    embedding,
    option,
    switch,
    topic,
)
from ketrag_fast.apps.cli.retrieve import place_of, reasons
from ketrag_fast.apps.terminal import inline, visible
from ketrag_fast.base.config.fields import LONGEST_SECONDS
from ketrag_fast.errors import ConfigError

if TYPE_CHECKING:
    from ketrag_fast.index import Index
    from ketrag_fast.types import Answer


_MOST_TOKENS = 1_000_000
_UNSUPPORTED = "[?] no passage supports this sentence"
_LISTED = 5
"""Maximum number of sources listed below an answer that cites none."""
_QUOTED = "These are quotes from the passages, not an answer written by a model:"


class Ask(Command):
    """Retrieve the context for a question and let a model answer from it, with numbered citations. A sentence
    that no passage supports ends with [?]. Without a model the sentences that fit best are quoted."""

    examples = (
        'ketrag ask "Who built the Fram?" --llm llama-cpp:model.gguf',
        'ketrag ask "Which ships were lost?" --filter "year>=1900"',
        'ketrag ask "Who led the men?" --html answer.html',
        'ketrag ask --continue "And where was he born?"',
        'ketrag ask --survey "Which dangers come up again and again?"',
    )
    question: str = argument("QUESTION", "question to answer")
    is_continued: bool = switch(
        "continue the last conversation: a question such as `And where was he born?` takes names from it",
        "--continue",
    )
    language_model = answering("llm")
    retrieval = topic("retrieval", "query", shown=("mode", "budget", "filter", "newest"))
    survey: bool = switch(
        "question about the whole: answer from excerpts of many documents, by theme (--mode survey)"
    )
    literal: bool = declare_literal()
    explain: bool = switch("print why each source was retrieved")
    kind: str | None = option(
        None,
        "form of the answer: text; Yes, No or Maybe; or one --option (default free)",
        rare=True,
        choices=("free", "yes-no", "choice"),
    )
    options: tuple[str, ...] = option("TEXT", "possible answer; repeatable", "--option", rare=True)
    quotes: int = option("N", "maximum number of sentences quoted without a model (default 3)", default=3)
    html: str | None = option("FILE", "write answer and passages as a web page")
    answer_tokens: int = option("N", "maximum tokens of the answer (default 512)", rare=True, default=512)
    answer_seconds: float = option(
        "X", "time limit of the answer in seconds (default 300)", rare=True, default=300.0
    )
    embedder = EMBEDDER
    model = embedding()
    freshness = FRESHNESS

    def run(self) -> int:
        """Print the answer and its sources."""
        options.require_text(self.question)
        if not 0 < self.answer_tokens <= _MOST_TOKENS or not 0 < self.answer_seconds <= LONGEST_SECONDS:
            raise ConfigError(
                f"--answer-tokens must be from 1 to {_MOST_TOKENS:,} and --answer-seconds above 0 and at "
                f"most {LONGEST_SECONDS:g}, got {self.answer_tokens} and {self.answer_seconds:g}"
            )
        html = output.page_path(self.html)
        settings = options.query_settings_of(self)
        mode = options.flags(self).get("mode")
        if self.survey:
            if mode not in (None, "survey"):
                raise ConfigError(f"--survey contradicts --mode {mode}", hint="leave out one of them")
            settings = settings.having(mode="survey")
        from ketrag_fast.index.conversations import store_turns, stored_turns
        from ketrag_fast.index.indexes import Indexes
        from ketrag_fast.query.themes.question import asks_about_the_whole

        shown = _Screen(self.explain, settings.top) if not self.json else None
        with options.searched_indexes(self, settings) as indexes:
            opened = [index for index in indexes.values() if not isinstance(index, str)]
            if opened:
                self._require_model_for_kind(opened[0])
            if self.explain:
                options.only_index(indexes, "--explain")
            folders = [index.path for index in opened]
            history = stored_turns(folders) if self.is_continued else []
            if self.is_continued and not history and not self.quiet:
                output.say("there is no conversation about this index to continue")
            answer = Indexes(indexes, settings=settings, copies=False).ask(
                self.question,
                explain=self.explain or html is not None,
                literal=self.literal,
                tokens=self.answer_tokens,
                seconds=self.answer_seconds,
                on_text=shown,
                kind=self.kind,
                options=self.options,
                quotes=self.quotes,
                history=history,
            )
            is_stored = bool(folders) and store_turns(folders, [*history, answer.turn])
            if not is_stored and self.is_continued and not self.quiet:
                output.warn("the conversation cannot be stored: the state folder cannot be written")
            if html is not None:
                from ketrag_fast.apps.cli.context_page import write_context

                write_context(html, options.only_index(indexes, "--html"), answer.context, answer)
        if shown is None:
            output.write_json(answer.to_json())
            return 0
        shown.finish(answer, quiet=self.quiet)
        if not (self.quiet or self.survey) and mode is None and asks_about_the_whole(self.question):
            output.say(
                "this may be a question about the whole: --survey answers from more documents, by theme"
            )
        return 0

    def _require_model_for_kind(self, index: Index) -> None:
        """Raise ConfigError if --kind or --option needs a language model and none is set."""
        if (self.kind in (None, "free") and not self.options) or index.inspect.has_answer_llm:
            return
        given = "--option" if self.kind is None else f"--kind {self.kind}"
        raise ConfigError(
            f"{given} needs a language model; without one, the best sentences are quoted",
            hint="name one: --answer-llm SPEC (llama-cpp:PATH.gguf or openai:MODEL@URL)",
        )


class _Screen:
    """Prints an answer as it streams, then its sources."""

    def __init__(self, explain: bool, top: int | None) -> None:
        self._begun = False
        self._explain = explain
        self._top = top

    def __call__(self, text: str) -> None:
        self._begun = True
        sys.stdout.write(visible(text))
        sys.stdout.flush()

    def finish(self, answer: Answer, *, quiet: bool) -> None:
        """Print warnings and sources after the answer."""
        if self._begun:
            output.write("")
        if not quiet:
            for warning in answer.warnings:
                output.warn(warning)
            if answer.citations_removed:
                count = answer.citations_removed
                output.warn(f"{count} {'citation' if count == 1 else 'citations'} without a passage removed")
            for note in answer.context.notes:
                output.say(inline(note))
            if answer.read_as is not None:
                output.say(f"read as: {inline(answer.read_as)}")
        if answer.reason == "no_model":
            if not quiet:
                output.say(
                    "no language model is set (--llm SPEC); `ketrag retrieve` prints the whole passages"
                )
            output.write("\n".join([_QUOTED, *quotes(answer), *self._sources(answer)]))
        elif answer.reason == "no_answer":
            if not quiet:
                output.say("the extractive model finds no answer")
            output.write("\n".join([_QUOTED, *quotes(answer), *self._sources(answer)]))
        elif answer.reason is not None:
            output.write(answer.text)
            if not quiet:
                output.say(output.empty_text(answer.reason, self._top, answer.context.unknown))
        elif answer.is_quoted:
            if not quiet:
                output.say(
                    "the answer is a span that an extractive model quotes from the passage; its score above "
                    f"no answer is {answer.quotes[0].score:.2f}"
                )
            others = [f"other spans: {', '.join(quotes(answer)[1:])}"] if answer.quotes[1:] else []
            output.write("\n".join([*others, *self._sources(answer)]))
        else:
            marks = ["", _UNSUPPORTED] if any(one.is_supported is False for one in answer.sentences) else []
            output.write("\n".join([*marks, *self._sources(answer)]))

    def _sources(self, answer: Answer) -> list[str]:
        cited = {one.number: one.passage for one in answer.citations}
        for quote in sorted(answer.quotes, key=lambda quote: quote.number):
            cited.setdefault(quote.number, answer.context.passages[quote.number - 1])
        lines = ["", "Sources:"]
        more = 0
        if not cited:
            used = answer.context.passages[: answer.passages_used]
            lines, more = ["", "Passages read, none of which is cited:"], max(len(used) - _LISTED, 0)
            cited = dict(enumerate(used[:_LISTED], 1))
        for number, passage in cited.items():
            lines.append(f"  [{number}] {place_of(passage)}")
            lines += reasons(passage) if self._explain else []
        return [*lines, f"  and {more:,} more"] if more else lines


def quotes(answer: Answer) -> list[str]:
    """Return the quoted sentences, best first; those of a survey by theme, under its label.

    A row is printed below the header of its table.
    """
    lines: list[str] = []
    last, header = None, ""
    for quote in answer.quotes:
        why = answer.context.passages[quote.number - 1].why
        theme = next((one["theme"] for one in why if isinstance(one, dict) and "theme" in one), last)
        if theme != last:
            lines += ["", inline(theme)]
            last = theme
        text = " ".join(quote.text.split())
        if quote.header and quote.header != header:
            lines.append(quote.header)
        header = quote.header
        lines.append(f"{text} [{quote.number}]" if header else f"“{text}” [{quote.number}]")
    return lines
