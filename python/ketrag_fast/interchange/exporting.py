"""`export_graph`: write a graph of an index in a format that other programs read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.filters import filter_condition
from ketrag_fast.base.filters.allow import holds_always
from ketrag_fast.base.memory import enough_memory
from ketrag_fast.base.progress import Meter
from ketrag_fast.errors import Cancelled, ConfigError, InputError, ModeUnavailable
from ketrag_fast.interchange import graphrag_tables
from ketrag_fast.interchange.graph_files import (
    NEO4J_FILES,
    write_gexf,
    write_graphml,
    write_json_lines,
    write_neo4j,
)
from ketrag_fast.interchange.graph_part import (
    GraphPart,
    Passages,
    Tick,
    drawing_tables,
    neighbourhood,
    nodes_of_units,
    whole_graph,
)
from ketrag_fast.interchange.targets import new_file, new_folder, require_free
from ketrag_fast.page import index_file
from ketrag_fast.records import asdict, dataclass
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.drawing import GraphTables
from ketrag_fast.systems.spec.stage import resolve

if TYPE_CHECKING:
    from ketrag_fast.base.progress import Callback
    from ketrag_fast.index import Index
    from ketrag_fast.query.query import Filter
    from ketrag_fast.systems.spec.drawing import GraphTables


FORMATS: Final = {
    "graphrag": "a folder of Parquet tables in the layout of Microsoft GraphRAG",
    "graphml": "a GraphML file",
    "gexf": "a GEXF file, for Gephi",
    "neo4j": "a folder of CSV files for `neo4j-admin database import`",
    "jsonl": "a file of JSON lines",
    "html": "a page with the views Ask, Themes, Graph, Documents and Index, which needs no server",
}
"""The formats and what they write."""
SCHEMAS: Final = (2, 3)
"""The versions of GraphRAG's layout."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export: the graph, what was written, and the number of bytes."""

    format: str
    graph: str
    path: str
    nodes: int
    edges: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """Return the object that `ketrag export --json` prints."""
        return {"schema": "ketrag/export/1", **asdict(self)}


@enough_memory()
def export_graph(
    index: Index,
    format: str,
    target: str | os.PathLike[str],
    *,
    graph: str | None = None,
    neighbourhood_of: str | None = None,
    hops: int = 1,
    query: str | None = None,
    filter: Filter | None = None,
    allow: Filter | None = None,
    schema: int = 3,
    communities: bool = False,
    documents: bool = False,
    layout: bool = False,
    replace: bool = False,
    progress: Callback | None = None,
) -> Exported:
    """Write a graph of an open index to a file or folder, which appears when it is complete.

    Equal indexes give equal bytes. Memory grows by some bytes for each node and edge; texts are streamed.

    Args:
        index: the open index.
        format: one of `FORMATS`: graphrag, graphml, gexf, neo4j, jsonl and html.
        target: the file or folder to write.
        graph: the name of the graph; by default the first that the index has, for `html` every one.
        neighbourhood_of: export only what is at most `hops` edges away from this node.
        query: export only the nodes of the passages that this query retrieves, and the edges between them.
        filter, allow: use the graph of the matching documents only; others leave no node, edge or count. The
            filter of the settings applies unless another one is given.
        schema: for `graphrag`, the version of the layout: 2 or 3.
        communities: for `graphrag`, compute communities; otherwise those that the index has are written, or
            its themes if a language model has summarised them.
        documents: for `jsonl`, add the documents, chunks and units.
        layout: for `gexf`, compute positions.
        replace: overwrite an earlier export.
        progress: called with the number of rows written; stops the export by returning False.

    Raises:
        ConfigError: The format or an option is unknown, or the target exists.
        ModeUnavailable: The index lacks the graph; the hint has the command that adds it.
        InputError: No node has the name, or a filter cannot be read.
        BackendMissing: `graphrag` needs pyarrow.
        StorageFull, ReadOnly, Cancelled, IndexLocked: The target cannot be written.

    Examples:
        >>> report = export_graph(index, "graphml", scratch / "ships.graphml", graph="walk")
        >>> report.nodes > 0, (scratch / "ships.graphml").exists()
        (True, True)
    """
    place = Path(target)
    _check_options(format, schema, neighbourhood_of, query, communities=communities, documents=documents)
    if layout and format != "gexf":
        raise ConfigError(f"positions are written by the format gexf, not by {format}")
    require_free(place, replace=replace)
    opened = _restrict(index, filter, allow, progress)
    if format == "html":
        return _write_page(
            opened, place, graph, neighbourhood_of, hops, query=query, replace=replace, progress=progress
        )
    part = _part(opened, graph, neighbourhood_of, hops, query)
    meter = Meter("export", progress, "rows")
    tick = _counter(meter, len(part.node_ids) + len(part.edge_ids))
    passages = Passages(opened, part)
    if format == "graphrag":
        graphrag_tables.require_arrow()
        found = graphrag_tables.communities_of(part, opened, computed=communities)
        with new_folder(place, graphrag_tables.NAMES, replace=replace) as folder:
            graphrag_tables.GraphRagExport(part, passages, tick).write(folder, schema, found)
    elif format == "neo4j":
        with new_folder(place, NEO4J_FILES, replace=replace) as folder:
            write_neo4j(part, folder, tick)
    else:
        with new_file(place, replace=replace) as stream:
            if format == "jsonl":
                write_json_lines(part, stream, passages if documents else None, tick)
            elif format == "gexf":
                write_gexf(part, stream, tick, layout=layout)
            else:
                write_graphml(part, stream, tick)
    meter.finish()
    return Exported(format, part.name, str(place), len(part.node_ids), len(part.edge_ids), _size(place))


def _write_page(
    index: Index,
    place: Path,
    graph: str | None,
    centre: str | None,
    hops: int,
    *,
    query: str | None,
    replace: bool,
    progress: Callback | None,
) -> Exported:
    """Write the HTML page of the whole index, or of one graph or a neighbourhood in it with its passages."""
    graphs, units = index.inspect.graphs(), None
    if graph is not None or centre is not None:
        part = _part(index, graph, centre, hops, None)
        graphs = (part.name,)
        if centre is not None:
            units = Passages(index, part).units.tolist()
    if query is not None:
        units = sorted({passage.unit for passage in index.retrieve(query).passages})
    if units is None:
        units = range(len(index.inspect.arrays()["units"]["unit_tokens"]))
    meter = Meter("export", progress, "rows")
    tick = _counter(meter, len(units))
    with new_file(place, replace=replace) as stream:
        views = index_file.write(index, stream, graphs, units, tick, around=centre, query=query)
    meter.finish()
    nodes, edges = sum(len(view.nodes) for view in views), sum(len(view.edges) for view in views)
    return Exported("html", " ".join(graphs), str(place), nodes, edges, _size(place))


def _restrict(
    index: Index,
    filter: Filter | None,
    allow: Filter | None,
    progress: Callback | None,
) -> Index:
    """Return the index restricted to documents that match `allow` and the filter, given or from the
    settings."""
    kept = index.inspect.filter if filter is None else filter
    condition = None if kept is None else filter_condition(kept)
    if kept is not None and condition is not None and not holds_always(condition):
        index.inspect.check_filter(condition)  # names the known fields if one is unknown
        index = index.allowed(kept, progress=progress)
    return index if allow is None else index.allowed(allow, progress=progress)


def _check_options(
    format: str,
    schema: int,
    centre: str | None,
    query: str | None,
    *,
    communities: bool,
    documents: bool,
) -> None:
    if format not in FORMATS:
        raise ConfigError(f"{format!r} is not an export format", hint=f"the formats are {', '.join(FORMATS)}")
    if schema not in SCHEMAS:
        raise ConfigError(f"schema must be 2 or 3, got {schema!r}")
    if communities and format != "graphrag":
        raise ConfigError(f"communities are written by the format graphrag, not by {format}")
    if documents and format != "jsonl":
        raise ConfigError(f"documents are written by the format jsonl, not by {format}")
    if centre is not None and query is not None:
        raise ConfigError("a neighbourhood and a query cannot be combined", hint="give one of them")


def _part(index: Index, graph: str | None, centre: str | None, hops: int, query: str | None) -> GraphPart:
    name, tables = _tables(index, graph)
    if centre is not None:
        return neighbourhood(name, tables, centre, hops)
    if query is not None:
        return nodes_of_units(name, tables, [passage.unit for passage in index.retrieve(query).passages])
    return whole_graph(name, tables)


def _tables(index: Index, wanted: str | None) -> tuple[str, GraphTables]:
    """Return the graph of a name, or the first one. Raises ModeUnavailable, ConfigError."""
    sources = registry().graphs
    held = index.inspect.graphs()
    if wanted is None and not held:
        listed = "; ".join(f"{name}: `{graph.add}`" for name, graph in sources.items())
        raise ModeUnavailable("this index has no graph", hint=f"add one: {listed}")
    name = held[0] if wanted is None else wanted
    if name not in sources:
        raise ConfigError(
            f"{name!r} is not the name of a graph", hint=f"this index has {', '.join(held) or 'none'}"
        )
    if name not in held:
        raise ModeUnavailable(
            f"this index has no graph {name!r}",
            hint=f"`{sources[name].add}` adds it; it has: {', '.join(held)}",
        )
    stages: Mapping[str, Any] = index.inspect.arrays()
    own = sources[name].tables
    tables: GraphTables = (
        drawing_tables(resolve(sources[name].read)(stages)) if own is None else resolve(own)(stages)
    )
    if "name" not in tables.nodes:
        raise InputError(f"the graph {name} has no column `name`")
    return name, tables


def _counter(meter: Meter, total: int) -> Tick:
    done = 0

    def tick(rows: int) -> None:
        nonlocal done
        done += rows
        if meter(done, max(total, done)) is False:
            raise Cancelled("the export was stopped; nothing was written")

    return tick


def _size(place: Path) -> int:
    files = [place] if place.is_file() else [path for path in place.iterdir() if path.is_file()]
    return sum(path.stat().st_size for path in files)
