"""`ketrag search`, `grep` and `get`: find passages, find lines, and print the text at a location."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import (
    EMBEDDER,
    FRESHNESS,
    Command,
    argument,
    declare_hops,
    declare_literal,
    declare_only,
    embedding,
    option,
    settings,
    switch,
    topic,
)
from ketrag_fast.apps.terminal import (
    FAINT,
    NUMBER,
    PATH,
    Terminal,
    cut,
    display_path,
    in_json,
    inline,
    one_line,
    standard_output,
)
from ketrag_fast.apps.terminal import columns as columns_of
from ketrag_fast.errors import UnknownName
from ketrag_fast.records import replace
from ketrag_fast.types.wording import outdated_files

if TYPE_CHECKING:
    from ketrag_fast.types import Excerpt, Failure, Hit, Hits, Match
    from ketrag_fast.types.hits import Place


_INDENT = "    "


def _declare_glob() -> Any:
    return option(
        "GLOB", "only files whose path matches, such as 'docs/**/*.md'; '!GLOB' leaves files out; repeatable"
    )


class Search(Command):
    """Find passages: where each is, how relevant, and the two lines that show it best."""

    examples = (
        'ketrag search "how is a document purged"',
        "ketrag search purge --glob 'docs/**/*.md' -n 3",
        "ketrag search '\"red kettle\" title:kitchen type:pdf after:2024'",
        'ketrag search "write to disk" --grep fsync --json',
        "ketrag search --related src/app.py:120",
    )
    question: str | None = argument("QUERY", "what to look for", nargs="?")
    related: str | None = option(
        "PLACE",
        "instead of a query: FILE:LINE or a name in source code; find what defines the names that are used"
        " there, and what uses or tests the names that are defined there",
    )
    n: int = option("N", "maximum number of results (default 10)", "-n", default=10)
    files: bool = switch("print only the paths of the files")
    glob: tuple[str, ...] = _declare_glob()
    hops: tuple[str, ...] = declare_hops()
    literal: bool = declare_literal()
    only: str | None = declare_only()
    grep: str | None = option("PATTERN", "only passages with a line that matches")
    retrieval = topic(
        "retrieval", "query", shown=("mode", "min_score", "filter", "newest"), but=("top", "budget")
    )
    embedder = EMBEDDER
    model = embedding()
    freshness = FRESHNESS

    @property
    def answers_once(self) -> bool:
        """True: a search is one query."""
        return True

    def run(self) -> int:
        """Print the hits; return 1 if there are none."""
        question = self.question or ""
        if self.related is None:
            options.require_text(question)
        given = options.query_settings_of(self)
        how: dict[str, Any] = {"hops": self.hops, "literal": self.literal, "only": self.only}
        how |= {"glob": self.glob or None, "grep": self.grep, "related": self.related}
        with options.searched_indexes(self, given) as indexes:
            name, index = next(iter(indexes.items()))
            if len(indexes) > 1 or isinstance(index, str):
                from ketrag_fast.index.indexes import Indexes

                hits = Indexes(indexes, settings=given, copies=False).search(question, self.n, **how)
            else:
                hits = index.search(question, self.n, **how)
                hits = hits if name is None else hits.of_index(name)
        return self._show(hits)

    def _show(self, hits: Hits) -> int:
        code = 0 if hits else 1
        if self.json:
            output.write_json(hits.to_json(), code)
            return code
        if not self.quiet:
            for warning in hits.warnings:
                output.warn(warning)
        if hits and self.files:
            output.write_styled("\n".join(dict.fromkeys(map(path_of, hits))))
        elif hits:
            terminal = standard_output()
            output.write_styled("\n\n".join("\n".join(lines_of(hit, terminal)) for hit in hits))
        if not self.quiet:
            output.say_reading(hits, self.n)
            report_states(hits)
            from ketrag_fast.query.themes.question import asks_about_the_whole

            if "mode" not in self.settings and asks_about_the_whole(hits.query):
                output.say(
                    "this may be a question about the whole: `ketrag ask --survey` reads more documents"
                )
        return code


def path_of(place: Place) -> str:
    """Return the printed path of a location, or the document id if there is no file."""
    return inline(display_path(place.path) + place.part if place.path is not None else place.document)


def lines_of(hit: Hit, terminal: Terminal) -> list[str]:
    """Return the lines that show a hit."""
    relevance = f"{hit.score:.2f}"
    path, position = path_of(hit), inline(hit.position)
    index = "" if hit.index is None else f"[{inline(hit.index)}] "
    name = f"{index}{path}{f':{position}' if position else ''}"
    head = terminal.paint(path, PATH) + (f":{terminal.paint(position, NUMBER)}" if position else "")
    head = index + (terminal.link(head, hit.path) if hit.path is not None else head)
    title = inline(" › ".join(hit.headings))
    if hit.relation:
        title = inline(f"{hit.relation}  {title}".rstrip())
    if terminal.width is None:
        lines = ["  ".join(part for part in (head, title, relevance) if part)]
        room = None
    else:
        room = terminal.width - len(_INDENT)
        left = terminal.width - columns_of(name) - len(relevance) - 4
        shown = cut(title, left) if left >= 8 else ""
        gap = terminal.width - columns_of(name) - len(relevance) - (columns_of(shown) + 2 if shown else 0)
        lines = [head + (f"  {shown}" if shown else "")]
        lines[0] += f"{' ' * gap if gap > 0 else ' '}{terminal.paint(relevance, FAINT)}"
        if not shown and title:
            lines.append(_INDENT + terminal.paint(cut(title, room), FAINT))
    if hit.sender:
        about = f"from {hit.sender}" + (f", {hit.date}" if hit.date else "")
        about = inline(about) if room is None else cut(inline(about), room)
        lines.append(_INDENT + terminal.paint(about, FAINT))
    if hit.description:
        lines.append(_INDENT + terminal.paint(inline(hit.description), FAINT))
    if room is not None and len(hit.snippet) == 1:
        rows = terminal.wrapped(hit.snippet[0].text, hit.snippet[0].marks, room)
    else:
        rows = [terminal.marked(line.text, line.marks, room) for line in hit.snippet]
    return lines + [_INDENT + row for row in rows]


def report_states(places: Any) -> None:
    """Print a line for each kind of change since the index was built."""
    if any(place.state for place in places):
        for line in outdated_files((place.state, path_of(place)) for place in places):
            output.say(line)


class Grep(Command):
    """Print the lines that match a regular expression: those of the indexed texts, which PDFs, sheets and
    mails have too, and those of text files that are not indexed, such as lock files. A last line on stderr
    says which files were not searched; -v lists them. Exit code 1 without a match."""

    examples = (
        "ketrag grep 'fsync|rename' --glob '*.py'",
        "ketrag grep -i -w budget -c",
        "ketrag grep -F 'a[0]' -l",
    )
    pattern: str = argument("PATTERN", "regular expression, or plain text with -F")
    ignore_case: bool = switch("ignore case", "-i", "--ignore-case")
    words: bool = switch("match whole words only", "-w", "--words")
    fixed: bool = switch("treat the pattern as plain text", "-F", "--fixed")
    files: bool = switch("print only the paths of matching files", "-l", "--files")
    count: bool = switch("print the number of matching lines of each file", "-c", "--count")
    n: int | None = option("N", "maximum number of lines", "-n")
    glob: tuple[str, ...] = _declare_glob()
    only: str | None = declare_only()
    filter = settings("filter")
    allow = settings("allow", rare=True)
    freshness = FRESHNESS

    def run(self) -> int:
        """Print the lines, or with -l and -c the files; return 1 if there are none."""
        given = options.query_settings_of(self)
        from ketrag_fast.index import Index

        how: dict[str, Any] = {
            "ignore_case": self.ignore_case,
            "words": self.words,
            "fixed": self.fixed,
            "glob": self.glob or None,
            "only": self.only,
        }
        counts: dict[str, int] = {}
        matches: list[Match] = []
        unsearched: list[Failure] = []
        for name, path in options.searched_paths(self).items():
            with Index.open(path, settings=given) as index:
                options.freshen(self, index)
                if not (self.quiet or given.filter or given.allow):
                    unsearched += index.unsearched(how["glob"], only=self.only)
                if self.files or self.count:
                    counts |= index.grep_counts(self.pattern, **how)
                    continue
                left = None if self.n is None else self.n - len(matches)
                found = index.grep(self.pattern, limit=left, **how)
            matches += found if name is None else [replace(match, index=name) for match in found]
        if self.files or self.count:
            self._show_counts(counts)
            self._report(unsearched)
            return 0 if counts else 1
        if self.json and matches:
            rows = (json.dumps(match.to_json(), ensure_ascii=False) for match in matches)
            output.write(in_json("\n".join(rows)))
        elif not self.json and matches:
            output.write_styled("\n".join(_match_lines(matches, standard_output())))
        if not self.quiet and not self.json:
            report_states(matches)
        self._report(unsearched)
        return 0 if matches else 1

    def _report(self, unsearched: list[Failure]) -> None:
        """Print which files were not searched."""
        from ketrag_fast.index.left_out import reasons_of

        if unsearched:
            more = "" if self.verbose else "; -v lists them"
            output.notice(f"not searched: {reasons_of(unsearched)}{more}", as_json=self.json)
        for file in unsearched if self.verbose else ():
            output.notice(inline(f"  {file.document}: {file.message}"), as_json=self.json)

    def _show_counts(self, counts: dict[str, int]) -> None:
        if self.json:
            output.write_json({"schema": "ketrag/grep-counts/1", "counts": counts}, 0 if counts else 1)
        elif counts:
            terminal = standard_output()
            lines = []
            for path, count in counts.items():
                name = terminal.paint(inline(display_path(path)), PATH)
                lines.append(f"{name}:{count}" if self.count else name)
            output.write_styled("\n".join(lines))


def _match_lines(matches: list[Match], terminal: Terminal) -> list[str]:
    """Return the lines to print: grouped under their file on a terminal, else each with its path."""
    if terminal.width is None:
        return [
            ":".join(part for part in (path_of(one), inline(one.position), one_line(one.line.text)) if part)
            for one in matches
        ]
    lines: list[str] = []
    for name, group in groupby(matches, path_of):
        own = list(group)
        if lines:
            lines.append("")
        head = terminal.paint(name, PATH)
        lines.append(terminal.link(head, own[0].path) if own[0].path is not None else head)
        for one in own:
            position = f"{inline(one.position)}:" if one.position else ""
            room = max(terminal.width - len(position), 10)
            shown = terminal.marked(one.line.text, one.line.marks, room)
            lines.append(terminal.paint(position, NUMBER) + shown)
    return lines


class Get(Command):
    """Print the indexed text of a file, or a part of it, with line numbers."""

    examples = (
        "ketrag get notes/plan.md:93-110",
        "ketrag get report.pdf:p12",
        "ketrag get stock.xlsx:Stock!A65",
    )
    place: str = argument(
        "FILE[:POSITION]",
        "path or document id; position: 93-110 (lines), 93:18 (18 lines), 93, p12 (page), "
        "Stock!A65 (cell), 00:12:30 (time)",
    )
    rare = settings("filter", "allow", rare=True)
    freshness = FRESHNESS

    def run(self) -> int:
        """Print the text."""
        excerpt = self._find()
        if self.json:
            output.write_json({"schema": "ketrag/text/1", **excerpt.to_json()})
            return 0
        terminal = standard_output()
        rows = excerpt.rows()
        last = excerpt.first + excerpt.text.count("\n")
        wide = len(str(last))
        lines = [
            f"{terminal.paint(f'{number or str():>{wide}}', NUMBER)}  {one_line(row)}".rstrip()
            for number, row in rows
        ]
        output.write_styled("\n".join(lines))
        if not self.quiet:
            if last < excerpt.total:
                output.say(f"{path_of(excerpt)}: lines {excerpt.first:,}-{last:,} of {excerpt.total:,}")
            report_states([excerpt])
        return 0

    def _find(self) -> Excerpt:
        """Return the text from the first index that contains the file. Raises UnknownName if none does."""
        from ketrag_fast.index import Index

        given = options.query_settings_of(self)
        paths = list(options.searched_paths(self).values())
        for path in paths[:-1]:
            with suppress(UnknownName), Index.open(path, settings=given) as index:
                options.freshen(self, index)
                return index.text(self.place)
        with Index.open(paths[-1], settings=given) as index:
            options.freshen(self, index)
            return index.text(self.place)
