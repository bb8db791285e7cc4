"""`ketrag search QUERY` and `ketrag get FILE`: find passages, and print the text at a location."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal import FAINT, NUMBER, PATH, Terminal, cut, display_path, standard_output
from ketrag_fast.apps.cli.terminal import columns as columns_of
from ketrag_fast.apps.cli.terminal_text import inline, one_line
from ketrag_fast.errors import EmptyQuery, UnknownName

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings
    from ketrag_fast.types import Excerpt, Hit, Hits
    from ketrag_fast.types.hits import Place


_INDENT = "    "


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "search",
        parents=[shared],
        description="Find passages: where each is, how relevant, and the two lines that show it best.",
        examples=(
            'ketrag search "how is a document purged"',
            "ketrag search purge --glob 'docs/**/*.md' -n 3",
            'ketrag search "write to disk" --grep fsync --json',
        ),
    )
    parser.add_argument("question", metavar="QUERY", help="what to look for")
    parser.add_argument(
        "-n", type=int, default=10, metavar="N", help="maximum number of results (default 10)"
    )
    parser.add_argument("--files", action="store_true", help="print only the paths of the files")
    declare_glob(parser)
    options.hops(parser)
    parser.add_argument("--grep", metavar="PATTERN", help="only passages with a line that matches")
    options.topic(
        parser,
        "retrieval",
        "query",
        shown=("mode", "min_score", "filter", "newest"),
        but=("top", "budget"),
    )
    group = parser.add_argument_group("embedding model")
    options.setting(group, "embedder", rare=True)
    options.model(parser)
    options.freshness(parser)
    parser.set_defaults(run=run, go_on="run the same command again")


def declare_glob(parser: argparse.ArgumentParser) -> None:
    """Declare `--glob`."""
    parser.add_argument(
        "--glob",
        action="append",
        metavar="GLOB",
        help="only files whose path matches, such as 'docs/**/*.md'; '!GLOB' leaves files out; repeatable",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if not args.question.strip():
        raise EmptyQuery("the query is empty", hint="give at least one word: is a variable unset?")
    settings = options.query_settings_of(args)
    found = []
    for name, path in options.searched_paths(args).items():
        from ketrag_fast.index import Index

        with Index.open(path, settings=settings, deadline=settings.deadline) as index:
            options.freshen(args, index)
            hits = index.search(args.question, args.n, glob=args.glob, grep=args.grep, hops=args.hops)
        found.append(hits if name is None else hits.of_index(name))
    return show(args, found[0] if len(found) == 1 else merge_hits(found, args.n))


def merge_hits(found: Sequence[Hits], count: int) -> Hits:
    """Merge the hits of several indexes by score, which has the same scale in all of them."""
    from ketrag_fast.types import Hits
    from ketrag_fast.types.contexts import NOTHING_FITS

    hits = sorted((hit for hits in found for hit in hits), key=lambda hit: -hit.score)[:count]
    first = next((hits for hits in found if hits), found[0])
    nothing_fits = bool(hits) and all(one.nothing_fits for one in found if one)
    warnings = dict.fromkeys(warning for one in found for warning in one.warnings)
    if not nothing_fits:
        warnings.pop(NOTHING_FITS, None)  # another index has what fits
    return Hits(
        first.query,
        first.mode,
        tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, 1)),
        None if hits else first.reason,
        tuple(warnings),
        nothing_fits=nothing_fits,
    )


def show(args: argparse.Namespace, hits: Hits) -> int:
    """Print hits; return 1 if there are none."""
    code = 0 if hits else 1
    args.code = code
    if args.json:
        output.write_json(hits.to_json())
        return code
    if not args.quiet:
        for warning in hits.warnings:
            output.warn(warning)
    if args.files:
        lines = list(dict.fromkeys(path_of(hit) for hit in hits))
    else:
        terminal = standard_output()
        blocks = ["\n".join(lines_of(hit, terminal)) for hit in hits]
        lines = ["\n\n".join(blocks)] if blocks else []
    if lines:
        output.write_styled("\n".join(lines))
    if not args.quiet:
        if hits.reason is not None:
            output.say(output.empty_text(hits.reason, args.n))
        for text in state_lines(hits):
            output.say(text)
        from ketrag_fast.query.themes.question import asks_about_the_whole

        if args.set_mode is None and asks_about_the_whole(hits.query):
            output.say("this may be a question about the whole: `ketrag ask --survey` reads more documents")
    return code


def path_of(place: Place) -> str:
    """Return the printed path of a location, or the document id if there is no file."""
    return inline(display_path(place.path) + place.part if place.path is not None else place.document)


def location_of(place: Place, terminal: Terminal) -> str:
    """Return `path:position` with colours and a link."""
    position = inline(place.position)
    text = terminal.paint(path_of(place), PATH) + (f":{terminal.paint(position, NUMBER)}" if position else "")
    return terminal.link(text, place.path) if place.path is not None else text


def lines_of(hit: Hit, terminal: Terminal) -> list[str]:
    """Return the lines that show a hit."""
    relevance = f"{hit.score:.2f}"
    name = path_of(hit) + (f":{inline(hit.position)}" if hit.position else "")
    title = inline(" › ".join(hit.title))
    if hit.index is not None:
        name = f"[{inline(hit.index)}] {name}"
    head = location_of(hit, terminal)
    if hit.index is not None:
        head = f"[{inline(hit.index)}] {head}"
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
    if hit.description:
        lines.append(_INDENT + terminal.paint(inline(hit.description), FAINT))
    if room is not None and len(hit.snippet) == 1:
        lines += [_INDENT + row for row in terminal.wrapped(hit.snippet[0].text, hit.snippet[0].marks, room)]
    else:
        lines += [_INDENT + terminal.marked(line.text, line.marks, room) for line in hit.snippet]
    return lines


def state_lines(places: Any) -> list[str]:
    """Return one line for each kind of change since the index was built."""
    found = []
    for state, text in (
        ("changed", "was changed since it was indexed: the indexed text is shown"),
        ("missing", "does not exist any more: the indexed text is shown"),
    ):
        names = list(dict.fromkeys(path_of(place) for place in places if place.state == state))
        if names:
            more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
            found.append(f"{names[0]}{more} {text}")
    return found


def json_lines(rows: Any) -> str:
    """Return results as JSON lines."""
    return "\n".join(json.dumps(row.to_json(), ensure_ascii=False) for row in rows)


def declare_get(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "get",
        parents=[shared],
        description="Print the indexed text of a file, or a part of it, with line numbers. The file itself "
        "is not read.",
        examples=(
            "ketrag get notes/plan.md:93-110",
            "ketrag get report.pdf:p12",
            "ketrag get stock.xlsx:Stock!A65",
        ),
    )
    parser.add_argument(
        "place",
        metavar="FILE[:POSITION]",
        help="path or document id; position: 93-110 (lines), 93:18 (18 lines), 93, p12 (page), "
        "Stock!A65 (cell), 00:12:30 (time)",
    )
    options.setting(parser, "filter", "allow", rare=True)
    parser.set_defaults(run=_run_get, go_on="run the same command again")


def _run_get(args: argparse.Namespace) -> int:
    """Run the command."""
    settings = options.query_settings_of(args)
    excerpt = _find(args, settings)
    if args.json:
        output.write_json({"schema": "ketrag/text/1", **excerpt.to_json()})
        return 0
    terminal = standard_output()
    rows = excerpt.text.split("\n")
    last = excerpt.first + len(rows) - 1
    wide = len(str(last))
    lines = [
        f"{terminal.paint(f'{number:>{wide}}', NUMBER)}  {one_line(row)}".rstrip()
        for number, row in enumerate(rows, excerpt.first)
    ]
    output.write_styled("\n".join(lines))
    if not args.quiet:
        if last < excerpt.total:
            output.say(f"{path_of(excerpt)}: lines {excerpt.first:,}-{last:,} of {excerpt.total:,}")
        for text in state_lines([excerpt]):
            output.say(text)
    return 0


def _find(args: argparse.Namespace, settings: Settings) -> Excerpt:
    """Return the text from the first index that contains the file. Raises UnknownName if none does."""
    from ketrag_fast.index import Index

    paths = list(options.searched_paths(args).values())
    for path in paths[:-1]:
        with suppress(UnknownName), Index.open(path, settings=settings) as index:
            return index.text(args.place)
    with Index.open(paths[-1], settings=settings) as index:
        return index.text(args.place)
