"""Commands that carry an index or a graph to other machines and programs: `ketrag bundle`, `import` and
`export`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import FILTER, Command, argument, embedding, option, settings, switch, topic
from ketrag_fast.apps.terminal import inline
from ketrag_fast.errors import ConfigError, InputError

# Repeat the names in `interchange.importing` and `exporting`, because importing these modules is slow.
BUNDLE: Final = "bundle"
IMPORTED: Final = (BUNDLE, "graphrag", "lightrag")
EXPORTED: Final = ("graphrag", "graphml", "gexf", "neo4j", "jsonl", "html")
_CONTINUED: Final = "and "
"""How a hint begins if it is the end of its message and not advice."""


class Bundle(Command):
    """Write an index into one file, to move it to another machine. `ketrag import bundle` restores it and
    verifies every byte."""

    examples = (
        "ketrag bundle notes.bundle -i notes-index",
        "ketrag bundle notes.bundle --with-model",
        "ketrag import bundle notes.bundle -i elsewhere",
    )
    output: str = argument("FILE", "file to write")
    replace: bool = switch("overwrite an existing file")
    with_model: bool = switch("include the files of the embedding model")

    def run(self) -> int:
        """Write the file."""
        options.refuse_standard_stream(self.output, "standard output")
        path, _ = options.index_path(self)
        if options.query_settings_of(self, strict=False).allow is not None:
            raise ConfigError(
                "allow is set, but a bundle contains all documents",
                hint="write the permitted ones with `ketrag export jsonl FILE --documents`, or leave allow "
                "out (--config, KETRAG_ALLOW)",
            )
        from ketrag_fast.index import Index

        with Index.open(path) as index:
            size = index.bundle(self.output, replace=self.replace, with_model=self.with_model)
        if self.json:
            about = {"schema": "ketrag/bundle/1", "index": str(path), "file": self.output}
            output.write_json({**about, "bytes": size})
        else:
            output.write(f"{inline(self.output)}: {output.size_text(size)}")
        return 0


class Import(Command):
    """Restore an index from a file that `ketrag bundle` wrote, and verify every byte; or build one from the
    files of another program: documents, entities, relations and reports of communities are reused, and no LLM
    is called. Queries need the embedding model of the index, which `ketrag bundle --with-model` includes;
    otherwise name it with --embedder."""

    go_on = "nothing was written: run the same command again"
    examples = (
        "ketrag import bundle notes.bundle -i notes",
        "ketrag import lightrag rag_storage -i notes",
        "ketrag import graphrag graphrag-root/output -i notes",
        "ketrag import lightrag rag_storage -i notes --embedder native:all-MiniLM-L6-v2",
    )
    format: str = argument(None, "a bundle, or the program that wrote the files", choices=IMPORTED)
    source: str = argument("SOURCE", "bundle, or output folder or working directory of the program")
    replace: bool = switch("replace an existing index")
    build = topic(
        "what to build",
        "build",
        shown=("modes", "embedder", "chunk_tokens", "language"),
        but=("llm", "core_ratio"),
    )
    model = embedding()

    def run(self) -> int:
        """Import the files and print what was reused and what not."""
        path, _ = options.index_path(self)
        if self.format == BUNDLE:
            return self._restore(path)
        from ketrag_fast.interchange.importing import import_index

        found = import_index(
            self.format,
            Path(self.source),
            path,
            settings=options.build_settings_of(self),
            replace=self.replace,
            progress=options.progress(self),
        )
        code = output.PARTIAL if found.skipped else 0
        if self.json:
            output.write_json(found.to_json(), code)
        else:
            reports = f"{found.reports:,} reports of communities; " if found.reports else ""
            output.write(
                f"{inline(str(path))}: {found.documents:,} documents, {found.entities_taken:,} of "
                f"{found.entities:,} entities and {found.relations_taken:,} of {found.relations:,} "
                f"relations; {reports}the extraction is in {inline(found.recording)}",
                code,
            )
        if not self.quiet:
            list_rows("not taken", found.skipped)
            list_rows("note", found.notes)
        return code

    def _restore(self, path: Path) -> int:
        """Restore a bundle into a new or empty folder, and list the endpoints that the index names."""
        if self.replace:
            raise ConfigError("a bundle is restored into a new or empty folder: leave out --replace")
        from ketrag_fast.index import Index
        from ketrag_fast.index.endpoints import list_endpoints

        given = options.query_settings_of(self)
        Index.unbundle(self.source, path)
        endpoints = list_endpoints(path, settings=given)
        if self.json:
            rows = [endpoint.to_json() for endpoint in endpoints]
            about = {"schema": "ketrag/unbundle/1", "index": str(path), "file": self.source}
            output.write_json({**about, "endpoints": rows})
            return 0
        output.write(f"{inline(path)} is ready; `ketrag stats -i {inline(path)}` prints what it contains")
        for endpoint in endpoints:
            output.write(f"it names an endpoint as its {endpoint.setting}: {inline(endpoint.sentence())}")
        if any(not endpoint.trusted for endpoint in endpoints):
            output.write(f"`ketrag trust --help` explains how to confirm it for {inline(path)}")
        return 0


def list_rows(what: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Print to stderr what an import left out or noted, with examples."""
    for row in rows:
        named = [name for name in row["examples"] if str(name) not in row["what"].split()]
        examples = f" ({inline(', '.join(named))})" if named else ""
        times = f"{row['count']:,} x " if named or row["count"] > 1 else ""
        output.say(f"  {what}: {times}{row['what']}{examples}")


class Export(Command):
    """Write a graph of the index in a format that other programs read. graphrag is a folder of Parquet tables
    in the layout of Microsoft GraphRAG, neo4j a folder of CSV files; graphml, gexf and jsonl are files. html
    is a page for people, with the passages and every graph, that needs no server."""

    go_on = "nothing was written: run the same command again"
    examples = (
        "ketrag export graphml polar.graphml",
        "ketrag export graphrag graphrag-output --communities",
        "ketrag export html polar.html",
    )
    format: str = argument(None, "format to write", choices=EXPORTED)
    output: str = argument("OUTPUT", "file or folder to write")
    graph: str | None = option("NAME", "graph to export, such as walk (default: the first in the index)")
    neighbourhood: str | None = option("NAME", "export only the neighbourhood of this node")
    hops: int = option("N", "maximum number of edges from that node (default 1)", default=1)
    query: str | None = option("TEXT", "export only the nodes of the passages that this query retrieves")
    communities: bool = switch("graphrag: compute communities (hierarchical Leiden)")
    schema: int = option(None, "graphrag: version of the layout (default 3)", default=3, choices=(2, 3))
    layout: bool = switch("gexf: compute positions of the nodes")
    documents: bool = switch("jsonl: add the documents, chunks and units")
    replace: bool = switch("overwrite an earlier export")
    filter = settings(
        "filter", about=f"export only what is in documents whose metadata match, such as {FILTER}"
    )
    allow = settings("allow")

    def run(self) -> int:
        """Write the graph."""
        options.refuse_standard_stream(self.output, "standard output")
        from ketrag_fast.interchange.exporting import export_graph

        path = options.one_path(self)
        with options.open_index(self) as index:
            try:
                found = export_graph(
                    index,
                    self.format,
                    self.output,
                    graph=self.graph,
                    neighbourhood_of=self.neighbourhood,
                    hops=self.hops,
                    query=self.query,
                    schema=self.schema,
                    communities=self.communities,
                    documents=self.documents,
                    layout=self.layout,
                    replace=self.replace,
                    progress=options.progress(self),
                )
            except InputError as error:
                if error.hint is None or not error.hint.startswith(_CONTINUED):
                    raise
                about = f"`ketrag graph {shlex.quote(str(self.neighbourhood))}` suggests similar names"
                raise InputError(f"{error.message}, {error.hint}", hint=about) from None
        if self.json:
            output.write_json({**found.to_json(), "index": str(path)})
        else:
            names = found.graph.split()  # an HTML page has several
            graphs = (
                f"of the graph{'' if len(names) == 1 else 's'} {', '.join(names)}" if names else "of no graph"
            )
            output.write(
                f"{inline(self.output)}: {found.nodes:,} nodes and {found.edges:,} edges {graphs}, "
                f"{output.size_text(found.bytes)}"
            )
        return 0
