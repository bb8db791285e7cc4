"""`ketrag graph ENTITY`: an entity, its relations, and the sentences that they come from."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ketrag_fast.cli import options, output

if TYPE_CHECKING:
    from ketrag_fast.types import Entity, Span

_SHOWN = 20
_SENTENCES = 3


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "graph",
        parents=[shared],
        description="Shows what the skeleton knows of an entity. Case does not matter; near names are named.",
    )
    parser.add_argument("entity", metavar="ENTITY", help="its name")
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    path, _ = options.index_path(args)
    from ketrag_fast.index import Index

    with Index.open(path, settings=options.query_settings_of(args)) as index:
        found = index.entity(args.entity)
    if args.json:
        output.write_json(found.to_json())
    else:
        output.write("\n".join(_lines(found)))
    return 0


def _lines(entity: Entity) -> Iterator[str]:
    kind = f" ({entity.type.lower()})" if entity.type else ""
    yield f"{entity.name}{kind}: {len(entity.relations):,} relations, {len(entity.chunks):,} chunks"
    yield from (f"  {line}" for line in entity.description.splitlines())
    for relation in entity.relations[:_SHOWN]:
        yield f"- {relation.source} -- {relation.target}  (strength {relation.weight:g})"
        yield from (f"    {line}" for line in relation.description.splitlines())
        yield from _quoted(relation.sources, "    ")
    if len(entity.relations) > _SHOWN:
        yield f"  ... and {len(entity.relations) - _SHOWN:,} more (--json lists them all)"
    yield f"named in {len(entity.sources):,} sentences:"
    yield from _quoted(entity.sources, "  ", _SHOWN)


def _quoted(spans: Sequence[Span], indent: str, shown: int = _SENTENCES) -> Iterator[str]:
    for span in spans[:shown]:
        yield f"{indent}{span.document}[{span.start}:{span.end}] {' '.join(span.text.split())}"
    if len(spans) > shown:
        yield f"{indent}... and {len(spans) - shown:,} more"
