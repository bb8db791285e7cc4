"""`ketrag grep PATTERN`: exact search over the indexed texts."""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.search import declare_glob, json_lines, path_of, state_lines
from ketrag_fast.apps.cli.terminal import NUMBER, PATH, Terminal, display_path, standard_output
from ketrag_fast.apps.cli.terminal_text import in_json, inline, one_line

if TYPE_CHECKING:
    from ketrag_fast.types import Match


def declare(commands: Any, _: argparse.ArgumentParser) -> None:
    """Declare the command, with grep's short options."""
    parser = commands.add_parser(
        "grep",
        parents=[options.common(letters=False)],
        description="Print the lines of the indexed texts that match a regular expression. Also lines of "
        "PDFs, sheets and mails, whose text the index has. Exit code 1 without a match.",
        examples=(
            "ketrag grep 'fsync|rename' --glob '*.py'",
            "ketrag grep -i -w budget -c",
            "ketrag grep -F 'a[0]' -l",
        ),
    )
    parser.add_argument("pattern", metavar="PATTERN", help="regular expression, or plain text with -F")
    parser.add_argument("-i", "--ignore-case", action="store_true", help="ignore case")
    parser.add_argument("-w", "--words", action="store_true", help="match whole words only")
    parser.add_argument("-F", "--fixed", action="store_true", help="treat the pattern as plain text")
    parser.add_argument("-l", "--files", action="store_true", help="print only the paths of matching files")
    parser.add_argument(
        "-c", "--count", action="store_true", help="print the number of matching lines of each file"
    )
    parser.add_argument("-n", type=int, metavar="N", help="maximum number of lines")
    declare_glob(parser)
    options.setting(parser, "filter")
    options.setting(parser, "allow", rare=True)
    options.freshness(parser)
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    settings = options.query_settings_of(args)
    how = {"ignore_case": args.ignore_case, "words": args.words, "fixed": args.fixed, "glob": args.glob}
    from ketrag_fast.index import Index

    counts: dict[str, int] = {}
    matches: list[Match] = []
    for name, path in options.searched_paths(args).items():
        with Index.open(path, settings=settings) as index:
            options.freshen(args, index)
            if args.files or args.count:
                counts |= index.grep_counts(args.pattern, **how)
                continue
            left = None if args.n is None else args.n - len(matches)
            found = index.grep(args.pattern, limit=left, **how)
        matches += found if name is None else [replace(match, index=name) for match in found]
    if args.files or args.count:
        return _show_counts(args, counts)
    args.code = 0 if matches else 1
    if args.json:
        if matches:
            output.write(in_json(json_lines(matches)))
        return int(args.code)
    terminal = standard_output()
    if matches:
        output.write_styled("\n".join(_lines(matches, terminal)))
    if not args.quiet:
        for text in state_lines(matches):
            output.say(text)
    return int(args.code)


def _show_counts(args: argparse.Namespace, counts: dict[str, int]) -> int:
    args.code = 0 if counts else 1
    if args.json:
        output.write_json({"schema": "ketrag/grep-counts/1", "counts": counts})
        return int(args.code)
    terminal = standard_output()
    lines = []
    for path, count in counts.items():
        name = terminal.paint(inline(display_path(path)), PATH)
        lines.append(f"{name}:{count}" if args.count else name)
    if lines:
        output.write_styled("\n".join(lines))
    return int(args.code)


def _lines(matches: list[Match], terminal: Terminal) -> list[str]:
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
