"""`ketrag export FORMAT OUTPUT`: write a graph of the index for another program."""

from __future__ import annotations

import argparse
import shlex
from typing import Any, Final

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import InputError

# Repeats the names in interchange.exporting, because importing that module is slow.
FORMATS: Final = ("graphrag", "graphml", "gexf", "neo4j", "jsonl", "html")
_CONTINUED: Final = "and "
"""How a hint begins if it is the end of its message and not advice."""


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "export",
        parents=[shared],
        description="Write a graph of the index in a format that other programs read. graphrag is a folder "
        "of Parquet tables in the layout of Microsoft GraphRAG, neo4j a folder of CSV files; graphml, gexf "
        "and jsonl are files. html is a page for people, with the passages and every graph, that needs no "
        "server.",
        examples=(
            "ketrag export graphml polar.graphml",
            "ketrag export graphrag graphrag-output --communities",
            "ketrag export html polar.html",
        ),
    )
    parser.add_argument("format", choices=FORMATS, help="format to write")
    parser.add_argument("output", metavar="OUTPUT", help="file or folder to write")
    parser.add_argument(
        "--graph", metavar="NAME", help="skeleton, concepts, noderag, citations or walk (default: the first)"
    )
    parser.add_argument("--neighbourhood", metavar="NAME", help="export only the neighbourhood of this node")
    parser.add_argument(
        "--hops", type=int, default=1, metavar="N", help="maximum number of edges from that node (default 1)"
    )
    parser.add_argument(
        "--query", metavar="TEXT", help="export only the nodes of the passages that this query retrieves"
    )
    parser.add_argument(
        "--communities", action="store_true", help="graphrag: compute communities (hierarchical Leiden)"
    )
    parser.add_argument(
        "--schema", type=int, default=3, choices=(2, 3), help="graphrag: version of the layout (default 3)"
    )
    parser.add_argument("--layout", action="store_true", help="gexf: compute positions of the nodes")
    parser.add_argument("--documents", action="store_true", help="jsonl: add the documents, chunks and units")
    parser.add_argument("--replace", action="store_true", help="overwrite an earlier export")
    options.setting(
        parser,
        "filter",
        about=f"export only what is in documents whose metadata match, such as {options.FILTER}",
    )
    options.setting(parser, "allow")
    parser.set_defaults(run=run, go_on="nothing was written: run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    options.refuse_standard_stream(args.output, "standard output")
    path, _ = options.index_path(args)
    from ketrag_fast.index import Index
    from ketrag_fast.interchange.exporting import export_graph

    with Index.open(path, settings=options.query_settings_of(args)) as index:
        try:
            found = export_graph(
                index,
                args.format,
                args.output,
                graph=args.graph,
                neighbourhood_of=args.neighbourhood,
                hops=args.hops,
                query=args.query,
                schema=args.schema,
                communities=args.communities,
                documents=args.documents,
                layout=args.layout,
                replace=args.replace,
                progress=options.progress(args),
            )
        except InputError as error:
            if error.hint is None or not error.hint.startswith(_CONTINUED):
                raise
            about = f"`ketrag graph {shlex.quote(args.neighbourhood)}` suggests similar names"
            raise InputError(f"{error.message}, {error.hint}", hint=about) from None
    if args.json:
        output.write_json({**found.to_json(), "index": str(path)})
    else:
        output.write(
            f"{inline(args.output)}: {found.nodes:,} nodes and {found.edges:,} edges "
            f"{_graph_names(found.graph)}, {output.size_text(found.bytes)}"
        )
    return 0


def _graph_names(names: str) -> str:
    """Return the names of the exported graphs as a phrase; an HTML page has several."""
    listed = names.split()
    return f"of the graph{'' if len(listed) == 1 else 's'} {', '.join(listed)}" if listed else "of no graph"
