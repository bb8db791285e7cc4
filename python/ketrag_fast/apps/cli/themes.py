"""`ketrag themes`: what the documents of an index are about."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import ConfigError, UnknownName
from ketrag_fast.types.locations import describe_location
from ketrag_fast.types.wording import about_missing_name, counted

if TYPE_CHECKING:
    from ketrag_fast.index import Index
    from ketrag_fast.types import Theme, ThemeQuote, Themes, ThemeSummaries, ThemeSummary

_COUNT: Final = 12
"""Number of themes that are printed by default."""
_DEPTH: Final = 2
_BAR: Final = 20
_WIDE: Final = 100


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "themes",
        parents=[shared],
        description="Show what the documents of an index are about: themes with their terms, sizes and "
        "central sentences. With ID, show one theme with its documents, quotes and share over time. "
        "No model is needed. With --summarise a language model writes a summary of each theme, which the "
        "index keeps: later calls write only those that are missing after a change.",
        examples=(
            "ketrag themes",
            "ketrag themes 2.1",
            "ketrag themes --filter 'year>=2025' --count 5",
            "ketrag themes --summarise --llm llama-cpp:model.gguf",
        ),
    )
    parser.add_argument("theme", nargs="?", metavar="ID", help="number of a theme to show, such as 2.1")
    parser.add_argument(
        "--count", type=int, default=None, metavar="N", help=f"maximum number of themes (default: {_COUNT})"
    )
    parser.add_argument(
        "--depth", type=int, default=None, metavar="N", help=f"levels of narrower themes (default: {_DEPTH})"
    )
    options.setting(
        parser, "filter", about=f"themes of documents whose metadata match, such as {options.FILTER}"
    )
    options.setting(parser, "allow")
    parser.add_argument(
        "--summarise", action="store_true", help="have the language model write the missing summaries"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="with --summarise: print what it would take, and call no model"
    )
    options.answering(parser)
    group = parser.add_argument_group("limits of --summarise")
    options.setting(group, "limit_seconds", about="stop after this many seconds; what was written is kept")
    options.setting(group, "limit_usd", about="stop before this sum is exceeded; needs -o usd_per_million")
    options.setting(group, "llm_slots", about="themes summarised in parallel; 0: the backend decides")
    options.setting(group, "retry_failed", about="ask again about themes whose replies were unusable")
    parser.set_defaults(run=run, go_on="run the same command again; finished summaries are kept")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    for name in ("count", "depth"):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            raise ConfigError(f"--{name} must be at least 1, got {getattr(args, name)}")
    if args.theme is not None and args.count is not None:
        raise ConfigError("--count cannot be combined with ID", hint="leave out --count")
    if args.theme is not None and args.summarise:
        raise ConfigError("--summarise is for all themes", hint=f"leave out {args.theme}")
    if args.dry_run and not args.summarise:
        raise ConfigError("--dry-run belongs to --summarise", hint="themes are shown without calling a model")
    from ketrag_fast.index import Index

    with Index.open(options.one_path(args), settings=options.query_settings_of(args)) as index:
        if args.summarise:
            return _summarise(args, index)
        found = index.themes(progress=options.progress(args))
    depth = _DEPTH if args.depth is None else args.depth
    if args.theme is not None:
        theme = _find(found, args.theme)
        if args.json:
            output.write_json({"schema": "ketrag/theme/1", **theme.to_json()})
        else:
            output.write("\n".join(_one(theme, depth)))
        return 0
    if args.json:
        output.write_json(found.to_json())
        return 0
    count = _COUNT if args.count is None else args.count
    shown = found.themes[:count]
    if shown:
        output.write("\n".join(_overview(found, shown, depth)))
    if not args.quiet:
        output.say(_summary(found, len(shown)))
    return 0


def _summarise(args: argparse.Namespace, index: Index) -> int:
    """Write the missing summaries, or with --dry-run count them, and print a report."""
    report = index.summarise_themes(dry_run=args.dry_run, progress=options.progress(args))
    if args.json:
        output.write_json(report.to_json())
    else:
        output.write(_work(report, args.dry_run))
    if args.dry_run:
        return 0
    if report.failed and not args.quiet:
        output.warn(
            f"no usable reply about {counted(report.failed, 'theme')}, described by quotes alone; "
            "--retry-failed asks again"
        )
    if report.stopped and not args.quiet:
        output.warn(
            f"{counted(report.pending, 'theme')} left at {report.stopped}; the same command goes on there"
        )
    return output.PARTIAL if report.failed or report.pending else 0


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
    passages = f"{theme.passages:,} passage{'s' if theme.passages != 1 else ''}"
    return f"{passages} of {theme.document_count:,} document{'s' if theme.document_count != 1 else ''}"


def _quote(quote: ThemeQuote) -> str:
    """Return a quote on one line with its location."""
    text = " ".join(quote.text.split())
    cut = text if len(text) <= _WIDE else f"{text[: _WIDE - 1].rstrip()}…"
    place = describe_location({kind: one for kind, one in quote.location.items() if kind != "heading"})
    return inline(f"“{cut}”  {quote.document}{f', {place}' if place else ''}")


def _summary(found: Themes, shown: int) -> str:
    if not found.themes:
        return "the index has no passages to find themes in"
    themes = f"{len(found.themes):,} theme{'s' if len(found.themes) != 1 else ''}"
    text = f"{themes} in {found.passages:,} passages of {found.documents:,} documents"
    if shown < len(found.themes):
        text = f"{shown:,} of {text}"
    return f"{text}; {found.copies:,} copies count once" if found.copies else text
