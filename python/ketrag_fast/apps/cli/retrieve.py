"""`ketrag retrieve QUERY`: print the context for one query, or for many."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import (
    EMBEDDER,
    FRESHNESS,
    Command,
    answering,
    argument,
    declare_hops,
    declare_literal,
    declare_only,
    embedding,
    option,
    switch,
    topic,
)
from ketrag_fast.apps.terminal import inline, quote_source_lines
from ketrag_fast.errors import ConfigError, DocumentError, EmptyQuery, KetragError
from ketrag_fast.records import dataclass, replace
from ketrag_fast.types.locations import describe_location

if TYPE_CHECKING:
    from ketrag_fast.index import Index
    from ketrag_fast.query.query import QueryFields
    from ketrag_fast.types import Context, Passage

_BATCH = 256
_REASONS = 2
"""Maximum number of lines per passage with --explain."""
_MOST_WORDS = 10
"""Maximum number of query terms in the first line."""
_LINES = 'give one JSON object per line, such as {"_id": "1", "text": "Who built the Fram?"}'


class Retrieve(Command):
    """Print the context for a query, with its sources; with --queries, one JSON line for each query."""

    examples = (
        'ketrag retrieve "Who built the Fram?" --budget 2000',
        "ketrag retrieve \"Who built the Fram?\" --filter 'year>=1990 and lang=en' --explain",
        "ketrag retrieve --queries queries.jsonl > contexts.jsonl",
    )
    question: str | None = argument("QUERY", "query text")
    queries: str | None = option("FILE", "JSONL file of {_id, text}; - reads such lines from standard input")
    retrieval = topic("retrieval", "query", shown=("mode", "budget", "top", "min_score", "filter", "newest"))
    hops: tuple[str, ...] = declare_hops()
    literal: bool = declare_literal()
    only: str | None = declare_only()
    explain: bool = switch("print why each passage was retrieved")
    html: str | None = option("FILE", "write context and reasons as a web page")
    embedder = EMBEDDER
    language_model = answering()
    model = embedding()
    freshness = FRESHNESS

    @property
    def answers_once(self) -> bool:
        """True unless --queries names a file of queries."""
        return self.queries is None

    def run(self) -> int:
        """Print the context, or the contexts of --queries."""
        if (self.question is None) == (self.queries is None):
            raise ConfigError(
                "give either a QUERY or --queries FILE",
                hint='for example: ketrag retrieve "Who built the Fram?"',
            )
        settings = options.query_settings_of(self)
        if self.question is None:
            name = str(self.queries)
            for option_, given in (("--html", self.html), ("--hop", self.hops)):
                if given:
                    raise ConfigError(f"{option_} takes one query", hint="give a QUERY instead of --queries")
            with _lines(name) as lines, options.searched_indexes(self, settings) as indexes:
                return self._many(options.only_index(indexes, "--queries"), lines)
        options.require_text(self.question)
        html = output.page_path(self.html)
        from ketrag_fast.index.indexes import Indexes

        with options.searched_indexes(self, settings) as indexes:
            if self.explain:
                options.only_index(indexes, "--explain")
            how: QueryFields = {"hops": self.hops, "literal": self.literal, "only": self.only}
            how["explain"] = self.explain or html is not None
            context = Indexes(indexes, settings=settings, copies=False).retrieve(self.question, **how)
            if html is not None:
                from ketrag_fast.apps.cli.context_page import write_context

                write_context(html, options.only_index(indexes, "--html"), context)
        if self.json:
            output.write_json(context.to_json())
            return 0
        if not self.quiet:
            for warning in context.warnings:
                output.warn(warning)
            output.say_reading(context, settings.top)
        if context.text:
            output.write(for_people(context, self.explain))
        return 0

    def _many(self, index: Index, lines: Iterable[bytes]) -> int:
        """Print the results in the order of the lines; a bad line gives an error instead."""
        queries = (_query(number, line) for number, line in enumerate(lines, 1) if line.strip())
        partial, count = False, 0
        size = 1 if self.queries == "-" else _BATCH  # standard input is answered live
        while batch := list(islice(queries, size)):
            count += len(batch)
            how: QueryFields = {"explain": self.explain, "literal": self.literal, "only": self.only}
            for query, answer in zip(batch, _answers(index, batch, how), strict=True):
                if isinstance(answer, KetragError):
                    partial = True
                    output.write_json({**output.error_json(answer), "query_id": query.id})
                else:
                    output.write_json(replace(answer, query_id=query.id).to_json())
        if not count and not self.quiet:
            output.warn(f"--queries {self.queries}: there are no queries; {_LINES}")
        return output.PARTIAL if partial else 0


def for_people(context: Context, explain: bool = False) -> str:
    """Return the context and its sources as text."""
    counted = f"{context.tokens:,} of {context.budget:,} tokens"
    lines = [
        quote_source_lines(context.text.rstrip("\n")),
        "",
        f"Sources ({context.mode}, {counted}):",
    ]
    for passage in context.passages:
        lines.append(f"  [{passage.rank}] {place_of(passage)}  ({output.score_text(passage.score)})")
        if explain:
            lines += reasons(passage)
    return "\n".join(lines)


def place_of(passage: Passage) -> str:
    """Return the location of a passage: document, span, page, heading and title."""
    location = dict(passage.location)
    for kind in ("heading", "symbol"):
        path = location.get(kind)
        if isinstance(path, list) and path and passage.title.startswith(str(path[-1])):
            del location[kind]  # the title repeats it
    where = f"{passage.document}:{passage.start}-{passage.end}"
    parts = [
        where if passage.index is None else f"[{passage.index}] {where}",
        describe_location(location),
        passage.title,
        mail_of(passage),
    ]
    parts.append(output.copies_text(passage))
    return "  ".join(inline(part) for part in parts if part)


def mail_of(passage: Passage) -> str:
    """Return the sender and the date of a mail; empty for other passages."""
    from ketrag_fast.query.mail_heads import sender_and_date

    sender, date = sender_and_date(passage.metadata)
    return ", ".join(filter(None, (sender and f"from {sender}", date)))


def reasons(passage: Passage) -> list[str]:
    """Return why a passage was retrieved, in at most two lines: its query terms, and its links."""
    words, lines = [], []
    for reason in passage.why:
        if isinstance(reason, Mapping) and "word" in reason:
            count = int(reason["count"])
            words.append(f"{reason['word']} ({count} times)" if count > 1 else str(reason["word"]))
        elif isinstance(reason, Mapping) and ("partner" in reason or "chain" in reason):
            lines += [str(reason["sentence"])] if "sentence" in reason else []
        else:
            lines.append(json.dumps(reason, ensure_ascii=False))
    if words:
        more = f" and {len(words) - _MOST_WORDS:,} more" if len(words) > _MOST_WORDS else ""
        lines.insert(0, f"contains {', '.join(words[:_MOST_WORDS])}{more}")
    return [f"      {inline(line)}" for line in lines[:_REASONS]]


def questions_of(name: str) -> list[str]:
    """Return the queries of a file for `--queries`. Raises the error of the first bad line."""
    with _lines(name) as lines:
        queries = [_query(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    for query in queries:
        if query.error is not None:
            raise query.error
    return [query.text for query in queries]


@dataclass(frozen=True, slots=True)
class _Query:
    id: str | None
    text: str
    error: KetragError | None = None


def _answers(index: Index, batch: list[_Query], how: QueryFields) -> list[Context | KetragError]:
    good = [query for query in batch if query.error is None]
    try:
        found: Iterator[Context | KetragError] = iter(
            index.retrieve_many([query.text for query in good], **how) if good else []
        )
    except KetragError as error:
        if len(good) == 1:
            found = iter([error])
        else:  # one query failed: run each alone to find it
            found = iter([_answers(index, [query], how)[0] for query in good])
    return [next(found) if query.error is None else query.error for query in batch]


def _query(number: int, line: bytes) -> _Query:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _Query(None, "", DocumentError(f"line {number} is not JSON: {error}", hint=_LINES))
    if not isinstance(data, dict) or not isinstance(data.get("text"), str):
        return _Query(None, "", DocumentError(f"line {number} is not {{_id, text}}", hint=_LINES))
    name = data.get("_id")
    identity = None if name is None else str(name)
    text = data["text"]
    if not text.strip():
        return _Query(identity, "", EmptyQuery(f"line {number}: the question is empty"))
    if not _is_text(text):
        return _Query(identity, "", DocumentError(f"line {number}: the query is not valid Unicode"))
    return _Query(identity, text)


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _lines(name: str) -> Iterator[IO[bytes]]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 - closed below; errors of the body are raised as they are
    except OSError as error:
        raise DocumentError(f"cannot read {name}: {error.strerror}") from None
    with file:
        yield file
