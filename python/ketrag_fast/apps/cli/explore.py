"""`ketrag themes` and `ketrag graph`: what the documents of an index are about, and its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import FILTER, Command, answering, argument, option, settings, switch
from ketrag_fast.apps.terminal import inline
from ketrag_fast.errors import ConfigError, ModeUnavailable, UnknownName
from ketrag_fast.types.locations import describe_location
from ketrag_fast.types.wording import about_missing_name, counted

if TYPE_CHECKING:
    from ketrag_fast.index import Index
    from ketrag_fast.types import GraphView, Theme, ThemeQuote, Themes, ThemeSummaries, ThemeSummary

_COUNT: Final = 12
"""Number of themes that are printed by default."""
_DEPTH: Final = 2
_BAR: Final = 20
_WIDE: Final = 100
_LIMITS: Final = "limits of --summarise"


class ShowThemes(Command):
    """Show what the documents of an index are about: themes with their terms, sizes and central sentences.
    With ID, show one theme with its documents, quotes and share over time. No model is needed. With
    --summarise a language model writes a summary of each theme, which the index keeps: later calls write only
    those that are missing after a change."""

    go_on = "run the same command again; finished summaries are kept"
    examples = (
        "ketrag themes",
        "ketrag themes 2.1",
        "ketrag themes --filter 'year>=2025' --count 5",
        "ketrag themes --summarise --llm llama-cpp:model.gguf",
    )
    theme: str | None = argument("ID", "number of a theme to show, such as 2.1")
    count: int | None = option("N", f"maximum number of themes (default: {_COUNT})")
    depth: int = option("N", f"levels of narrower themes (default: {_DEPTH})", default=_DEPTH)
    filter = settings("filter", about=f"themes of documents whose metadata match, such as {FILTER}")
    allow = settings("allow")
    summarise: bool = switch("have the language model write the missing summaries")
    dry_run: bool = switch("with --summarise: print what it would take, and call no model")
    language_model = answering("llm")
    seconds = settings(
        "limit_seconds", title=_LIMITS, about="stop after this many seconds; what was written is kept"
    )
    usd = settings(
        "limit_usd", title=_LIMITS, about="stop before this sum is exceeded; needs -o usd_per_million"
    )
    slots = settings(
        "llm_slots", title=_LIMITS, about="themes summarised in parallel; 0: the backend decides"
    )
    retry = settings(
        "retry_failed", title=_LIMITS, about="ask again about themes whose replies were unusable"
    )

    def run(self) -> int:
        """Print the themes or one of them, or write summaries."""
        for name, value in (("count", self.count), ("depth", self.depth)):
            if value is not None and value < 1:
                raise ConfigError(f"--{name} must be at least 1, got {value}")
        if self.theme is not None and self.count is not None:
            raise ConfigError("--count cannot be combined with ID", hint="leave out --count")
        if self.theme is not None and self.summarise:
            raise ConfigError("--summarise cannot be combined with ID", hint=f"leave out {self.theme}")
        if self.dry_run and not self.summarise:
            raise ConfigError("--dry-run needs --summarise", hint="themes are shown without calling a model")
        with options.open_index(self) as index:
            if self.summarise:
                return self._summarise(index)
            found = index.themes(progress=options.progress(self))
        if self.theme is not None:
            theme = _find(found, self.theme)
            if self.json:
                output.write_json({"schema": "ketrag/theme/1", **theme.to_json()})
            else:
                output.write("\n".join(_one(theme, self.depth)))
            return 0
        if self.json:
            output.write_json(found.to_json())
            return 0
        shown = found.themes[: _COUNT if self.count is None else self.count]
        if shown:
            output.write("\n".join(_overview(found, shown, self.depth)))
        if not self.quiet:
            output.say(_summary(found, len(shown)))
        return 0

    def _summarise(self, index: Index) -> int:
        """Write the missing summaries, or with --dry-run count them, and print a report."""
        report = index.summarise_themes(dry_run=self.dry_run, progress=options.progress(self))
        code = output.PARTIAL if not self.dry_run and (report.failed or report.pending) else 0
        if self.json:
            output.write_json(report.to_json(), code)
        else:
            output.write(_work(report, self.dry_run), code)
        if report.failed and not self.dry_run and not self.quiet:
            output.warn(
                f"no usable reply about {counted(report.failed, 'theme')}, described by quotes alone; "
                "--retry-failed asks again"
            )
        if report.stopped and not self.dry_run and not self.quiet:
            output.warn(
                f"{counted(report.pending, 'theme')} left at {report.stopped}; run the same command again "
                "to continue"
            )
        return code


def _work(report: ThemeSummaries, dry_run: bool) -> str:
    """Return one line about the work that was done, or would be done."""
    done = f"{report.pending:,} missing" if dry_run else f"{report.written:,} written"
    price = "" if report.usd is None else f", {report.usd:.4f} USD"
    seconds = "time unknown" if report.seconds is None else output.time_text(report.seconds)
    about = "; estimated, and nothing was done" if dry_run else ""
    return (
        f"{counted(report.themes, 'theme')}: {report.kept:,} summarised before, {done}; "
        f"{counted(report.calls, 'call')} of the language model, {report.tokens_in:,} tokens in, "
        f"{report.tokens_out:,} out{price}, {seconds}{about}"
    )


def _find(found: Themes, name: str) -> Theme:
    """Return the theme with a number. Raises UnknownName."""
    themes = {theme.id: theme for theme in found.walk()}
    if name not in themes:
        raise UnknownName(f"there is no theme {name!r}", hint=about_missing_name(name, list(themes)[:5]))
    return themes[name]


def _overview(found: Themes, shown: tuple[Theme, ...], depth: int) -> Iterator[str]:
    for theme in shown:
        share = theme.passages / max(found.passages, 1)
        yield f"{theme.id}  {inline(theme.label)}  ({_size(theme)}, {share:.0%})"
        if theme.summary is not None:
            yield from _summary_lines(theme.summary)
        for quote in theme.quotes[: theme.summary is None]:
            yield f"     {_quote(quote)}"
        yield from _narrower(theme, depth)
        yield ""


def _narrower(theme: Theme, depth: int, indent: str = "   ") -> Iterator[str]:
    if depth > 1:
        for one in theme.themes:
            yield f"{indent}{one.id}  {inline(one.label)}  ({one.passages:,})"
            yield from _narrower(one, depth - 1, indent + "   ")


def _one(theme: Theme, depth: int) -> Iterator[str]:
    yield f"{theme.id}  {inline(theme.label)}  ({_size(theme)})"
    if theme.summary is not None:
        yield from _summary_lines(theme.summary)
    yield from _narrower(theme, depth)
    if theme.quotes:
        yield "quotes:"
        yield from (f"   {_quote(quote)}" for quote in theme.quotes)
    yield "documents:"
    wide = min(max(len(inline(one.document)) for one in theme.documents), 60) if theme.documents else 0
    for one in theme.documents:
        yield f"   {inline(one.document):<{wide}}  {one.passages:>5,}  {inline(one.title)}".rstrip()
    if theme.document_count > len(theme.documents):
        yield f"   and {theme.document_count - len(theme.documents):,} more"
    if theme.over_time:
        yield "over time, of all passages:"
        most = max(one.share for one in theme.over_time) or 1
        for period in theme.over_time:
            bar = "█" * round(_BAR * period.share / most)
            yield f"   {period.period}  {period.passages:>5,}  {period.share:>4.0%}  {bar}".rstrip()


def _summary_lines(summary: ThemeSummary) -> Iterator[str]:
    """Yield title and text of a summary as lines of a readable length."""
    title = inline(summary.title)
    for line in wrap(f"{title}{': ' if title else ''}{inline(summary.text)}", _WIDE):
        yield f"     {line}"


def _size(theme: Theme) -> str:
    return f"{counted(theme.passages, 'passage')} of {counted(theme.document_count, 'document')}"


def _quote(quote: ThemeQuote) -> str:
    """Return a quote on one line with its location."""
    text = " ".join(quote.text.split())
    cut = text if len(text) <= _WIDE else f"{text[: _WIDE - 1].rstrip()}…"
    place = describe_location({kind: one for kind, one in quote.location.items() if kind != "heading"})
    return inline(f"“{cut}”  {quote.document}{f', {place}' if place else ''}")


def _summary(found: Themes, shown: int) -> str:
    if not found.themes:
        return "the index has no passages to find themes in"
    themes = counted(len(found.themes), "theme")
    text = f"{themes} in {found.passages:,} passages of {found.documents:,} documents"
    if shown < len(found.themes):
        text = f"{shown:,} of {text}"
    return f"{text}; {found.copies:,} copies count once" if found.copies else text


_LIMIT = 300
_MOST_NAMES: Final = 20
_AROUND: Final = 60
"""Maximum number of nodes of the walk's graph that are read around a name: about what a terminal shows."""
_WALK: Final = "walk"
_CITATIONS = "citations"
"""The graph of `--kind document`."""


class Graph(Command):
    """Show the neighbourhood of a node in the graphs of the index: an entity, a concept or a document. Names
    are matched without case; similar names are suggested. An index that has only the graph of the walk shows
    the passages with the name and the names in them. With --html, draw the graph around NAME, or without NAME
    the whole graph or its best-linked part, into one file that needs no server."""

    examples = (
        "ketrag graph Fram",
        "ketrag graph docs/intro.md --kind document",
        "ketrag graph Fram --graph walk --html fram.html",
    )
    name: str | None = argument("NAME", "name of an entity or another node; id or title of a document")
    kind: str | None = option("KIND", "kind of the node if several have the name: entity, document, ...")
    html: str | None = option("FILE", "draw the graph into FILE, a page that loads nothing")
    graph: str | None = option("GRAPH", "graph to draw, such as walk (default: the first in the index)")
    limit: int | None = option("N", f"maximum number of nodes to draw (default: {_LIMIT})")
    filter = settings(
        "filter", about=f"show only what is in documents whose metadata match, such as {FILTER}"
    )
    allow = settings("allow")

    def run(self) -> int:
        """Print the node, or draw the graph."""
        html = output.page_path(self.html)
        if html is not None:
            return self._draw(html)
        if self.graph is not None or self.limit is not None:
            raise ConfigError("--graph and --limit have no effect without --html", hint="add --html FILE")
        if self.name is None:
            raise ConfigError("no node was named", hint="ketrag graph NAME, or ketrag graph --html FILE")
        with options.open_index(self) as index:
            missing = index.inspect.missing_graphs().get(_CITATIONS)
            if self.kind == "document" and missing is not None:
                raise ModeUnavailable("this index has no citation graph", hint=f"`{missing}` adds it")
            if self.kind is None and index.inspect.graphs() == (_WALK,):
                return self._print_walk(index, self.name)
            found = index.inspect.node(self.name, self.kind, filter=index.inspect.filter)
        if self.json:
            output.write_json(found.to_json())
        else:
            output.write("\n".join(inline(line) for line in found.lines()))
        return 0

    def _print_walk(self, index: Index, name: str) -> int:
        """Print the passages that the walk reaches from a name, and the names in them."""
        document = index.get(name)
        around = document.title or name if document is not None else name
        view = index.inspect.graph(_WALK, around=around, limit=_AROUND, filter=index.inspect.filter)
        if self.json:
            output.write_json(view.to_json())
        else:
            output.write("\n".join(inline(line) for line in _walk_lines(index, view, name)))
        return 0

    def _draw(self, file: Path) -> int:
        """Write the page of `--html`; with --json, also print the data of the drawing."""
        from ketrag_fast.page.assets import graph_page

        with options.open_index(self) as index:
            names = index.inspect.graphs()
            if not names:
                raise ModeUnavailable("this index has no graph", hint="ketrag index --modes auto")
            graph = self.graph or (_CITATIONS if self.kind == "document" else names[0])
            limit = _LIMIT if self.limit is None else self.limit
            view = index.inspect.graph(graph, around=self.name, limit=limit, filter=index.inspect.filter)
        title = f"graph {graph}" if self.name is None else f"graph {graph} around {self.name}"
        output.write_page(file, graph_page(view, title))
        if self.json:
            output.write_json(view.to_json())
        elif not self.quiet:
            nodes = f"{len(view.nodes):,} of {view.total_nodes:,} nodes"
            output.say(f"{file}: {nodes}, {len(view.edges):,} of {view.total_edges:,} edges")
        return 0


def _walk_lines(index: Index, view: GraphView, name: str) -> Iterator[str]:
    """Yield the passages next to the named nodes of the walk's graph, then the names in these passages."""
    seeds = {at for at, node in enumerate(view.nodes) if node.seed}
    near = {
        end for edge in view.edges for end in (edge.source, edge.target) if {edge.source, edge.target} & seeds
    }
    units = {at: unit for at in sorted(seeds | near) if (unit := view.nodes[at].unit) is not None}
    linked = {
        end
        for edge in view.edges
        for end in (edge.source, edge.target)
        if edge.source in units or edge.target in units
    }
    yield f"{name}  ({counted(len(units), 'passage')} in the graph of the walk)"
    for at, unit in units.items():
        ((_, span),) = index.inspect.around(unit, 0, 0)
        place = describe_location(index.inspect.location(unit, span.start, span.end))
        yield f"  {span.document}{f'  {place}' if place else ''}  {view.nodes[at].title}".rstrip()
    names = [view.nodes[at].title for at in sorted(linked - seeds) if view.nodes[at].unit is None]
    if names:
        yield "names in these passages:"
        yield f"  {', '.join(names[:_MOST_NAMES])}"
