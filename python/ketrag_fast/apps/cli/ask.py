"""`ketrag ask QUESTION`: an answer from the index, with numbered citations."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.retrieve import for_people, place_of, reasons
from ketrag_fast.apps.cli.terminal_text import visible
from ketrag_fast.base.config.fields import LONGEST_SECONDS
from ketrag_fast.errors import ConfigError, EmptyQuery

if TYPE_CHECKING:
    from ketrag_fast.types import Answer


_MOST_TOKENS = 1_000_000


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "ask",
        parents=[shared],
        description="Retrieves the context of a question and has a language model answer from it, with "
        "numbered citations of its passages. Without a model the passages are printed.",
    )
    parser.add_argument("question", metavar="QUESTION")
    parser.add_argument("--explain", action="store_true", help="say for each source why it was found")
    parser.add_argument(
        "--kind",
        choices=("free", "yes-no", "choice"),
        help="what the answer begins with: text, one of Yes, No and Maybe, or an order of the --options",
    )
    parser.add_argument(
        "--option", action="append", default=[], metavar="TEXT", help="one of several answers; repeat it"
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="write answer and passages as one page with links that open the sources",
    )
    options.topic(parser, "how passages are found", "query")
    answering = parser.add_argument_group("the language model")
    options.writer(answering)
    options.setting(answering, "embedder")
    answering.add_argument(
        "--answer-tokens",
        type=int,
        default=512,
        metavar="N",
        help="tokens of the answer, at most (default 512)",
    )
    answering.add_argument(
        "--answer-seconds", type=float, default=300.0, metavar="X", help="seconds it may take (default 300)"
    )
    options.setting(answering, "llm_context", "llm_usd_per_million", "llm_usd_per_million_out")
    options.model(parser)
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    if not args.question.strip():
        raise EmptyQuery("the question is empty")
    if not 0 < args.answer_tokens <= _MOST_TOKENS or not 0 < args.answer_seconds <= LONGEST_SECONDS:
        raise ConfigError(
            f"--answer-tokens and --answer-seconds must be above 0, at most {_MOST_TOKENS:,} and "
            f"{LONGEST_SECONDS:g}"
        )
    html = None if args.html is None else Path(args.html)
    if html is not None:
        output.has_place(html)
    path, _ = options.index_path(args)
    settings = options.query_settings_of(args)
    from ketrag_fast.index import Index

    shown = _Screen(args.explain) if not args.json else None
    with Index.open(path, settings=settings) as index:
        answer = index.ask(
            args.question,
            tokens=args.answer_tokens,
            seconds=args.answer_seconds,
            on_text=shown,
            kind=args.kind,
            options=args.option,
            explain=args.explain or html is not None,
        )
        if html is not None:
            from ketrag_fast.apps.cli.context_page import page

            files = index.inspect.files([passage.document for passage in answer.context.passages])
            output.write_page(html, page(answer.context, files, answer))
    if shown is None:
        output.write_json(answer.to_json())
    else:
        shown.finish(answer, quiet=args.quiet)
    return 0


class _Screen:
    """Writes an answer as it comes, then where it comes from."""

    def __init__(self, explain: bool) -> None:
        self._begun = False
        self._explain = explain

    def __call__(self, text: str) -> None:
        self._begun = True
        sys.stdout.write(visible(text))
        sys.stdout.flush()

    def finish(self, answer: Answer, *, quiet: bool) -> None:
        """The rest, after the answer's last piece."""
        if self._begun:
            output.write("")
        if not quiet:
            for warning in answer.warnings:
                output.warn(warning)
            if answer.citations_removed:
                count = answer.citations_removed
                output.warn(f"{count} {'citation' if count == 1 else 'citations'} led nowhere, taken out")
        if answer.reason == "no_model":
            if not quiet:
                output.say("no language model was given (--llm SPEC): these are the passages")
            output.write(for_people(answer.context, self._explain))
        elif answer.reason is not None:
            output.write(answer.text)
            if not quiet:
                output.say(f"no passages: {answer.reason}")
        elif answer.citations:
            lines = []
            for cited in answer.citations:
                lines.append(f"  [{cited.number}] {place_of(cited.passage)}")
                lines += reasons(cited.passage) if self._explain else []
            output.write("\n".join(["", "Sources:", *lines]))
