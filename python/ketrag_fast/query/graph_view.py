"""Pictures of the graphs of a generation: an overview, or the part around given nodes or passages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from ketrag_fast.errors import ExtensionError, InputError, KetragError, ModeUnavailable
from ketrag_fast.kernels import drawing
from ketrag_fast.models.lru import LruCache
from ketrag_fast.query.layout_words import is_layout_word
from ketrag_fast.query.query import core_text, whole
from ketrag_fast.records import dataclass, field
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.spec.stage import resolve
from ketrag_fast.types import GraphEdge, GraphNode, GraphView
from ketrag_fast.types.wording import about_missing_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.kernels.arrays import Report
    from ketrag_fast.storage.generation import Generation
    from ketrag_fast.systems.spec.drawing import DrawableGraph

MOST_NODES: Final = 200_000
"""Maximum number of drawn nodes."""
_EDGES: Final = 4
"""Maximum number of drawn edges per drawn node; with more edges a picture is solid black."""
_OVERVIEW: Final = 12
"""An overview of N nodes starts from the N / 12 nodes that have the most edges."""
_SPARE: Final = 4
"""One node in four more than drawn is chosen, to replace words of the layout, which are left out."""
_TITLE: Final = 500
_ENDS: Final = 4
"""Maximum number of nodes with the same name that are tried as an end of a path."""
_KEPT: Final = 8
"""Number of pictures that are cached per graph."""


class OpenGraph:
    """One graph of a generation: its nodes, its edges by node, and a cache of the latest pictures."""

    def __init__(self, name: str, drawable: DrawableGraph, generation: int) -> None:
        self.name = name
        self.drawable = drawable
        self.generation = generation
        self.starts = np.cumsum([0, *(block.count for block in drawable.blocks)])
        self._views = LruCache[GraphView](_KEPT)

    @cached_property
    def rows(self) -> drawing.Weighted:
        """The edges of each node."""
        own = self.drawable
        return drawing.weighted_graph(int(self.starts[-1]), own.sources, own.targets, own.weights)

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """The number of edges of each node."""
        ends = self.rows.indptr.astype(np.int64)
        return ends[1:] - ends[:-1]

    @property
    def edges(self) -> int:
        """The number of edges."""
        return len(self.rows.indices) // 2

    def find(self, name: str) -> list[int]:
        """Return the nodes with a name, or the node whose number is written as `#12`.

        Raises InputError with similar names if no node has it.
        """
        if not isinstance(name, str) or not name.strip():
            raise InputError("a node name must be a non-empty str", hint="give a name, or #NUMBER")
        name = core_text(name)
        if name.startswith("#") and name[1:].isascii() and name[1:].isdigit() and len(name) < 12:
            if int(name[1:]) < int(self.starts[-1]):
                return [int(name[1:])]
            raise InputError(
                f"the graph {self.name} has no node {name}", hint=f"it has {int(self.starts[-1]):,} nodes"
            )
        found = []
        for block, start in zip(self.drawable.blocks, self.starts.tolist(), strict=False):
            found += [start + number for number in block.find(name)]
        if found:
            return found
        near = dict.fromkeys(other for block in self.drawable.blocks for other in block.near(name))
        hint = about_missing_name(name, [other[:80] for other in list(near)[:5]])
        raise InputError(f"the graph {self.name} has no node {name[:200]!r}", hint=hint)

    def path(self, starts: Sequence[int], ends: Sequence[int], report: Report = None) -> list[int]:
        """Return the nodes of the shortest path from one of `starts` to one of `ends`.

        Among equally short paths, the earlier start wins, then the earlier end. Raises InputError if no path
        exists.
        """
        best: list[int] = []
        for start, end in product(starts[:_ENDS], ends[:_ENDS]):
            found = drawing.shortest_path(self.rows, start, end, report=report).tolist()
            if found and (not best or len(found) < len(best)):
                best = found
        if not best:
            raise InputError(
                f"the graph {self.name} has no path between these nodes",
                hint="they are in separate parts of the graph; look at the surroundings of each",
            )
        return best

    def view(
        self, seeds: Sequence[int], limit: int, report: Report = None, path: Sequence[int] = ()
    ) -> GraphView:
        """Return a picture around the seeds, or an overview without seeds. Pictures are cached.

        The nodes of `path` are also seeds, and the edges along the path are always drawn.
        """
        if len(path) > limit:
            raise InputError(
                f"the path has {len(path):,} nodes, and at most {limit:,} are drawn", hint="raise limit"
            )
        key = repr((tuple(seeds), tuple(path), limit))
        view = self._views.known([key]).get(key)
        if view is None:
            view = self._draw(list(dict.fromkeys([*path, *seeds])), limit, report, len(path))
            self._views.add({key: view})
        return view

    def _draw(self, seeds: list[int], limit: int, report: Report, on_path: int = 0) -> GraphView:
        rows = self.rows
        nodes = self._chosen(seeds, limit + limit // _SPARE + 1, report)
        nodes = np.asarray(
            [n for at, n in enumerate(nodes.tolist()) if at < len(seeds) or not self._is_layout(n)][:limit],
            np.uint32,
        )
        edges = drawing.induced_edges(rows, nodes, max(_EDGES * len(nodes), 1000), report=report)
        if on_path:
            edges = self._with_path(nodes[:on_path], edges)
        part = drawing.weighted_graph(len(nodes), edges.sources, edges.targets, edges.weights)
        places = drawing.layout(part, report=report)
        labels = drawing.communities(part, report=report).tolist()
        chosen = set(seeds)
        drawn = [
            self._node(node, label, x, y, node in chosen)
            for node, label, (x, y) in zip(nodes.tolist(), labels, places.tolist(), strict=True)
        ]
        blocks = np.searchsorted(self.starts, nodes, "right") - 1
        return GraphView(
            graph=self.name,
            nodes=tuple(drawn),
            edges=tuple(
                GraphEdge(a, b, self._edge_kind(int(blocks[a]), int(blocks[b])), weight)
                for a, b, weight in zip(
                    edges.sources.tolist(), edges.targets.tolist(), edges.weights.tolist(), strict=True
                )
            ),
            total_nodes=int(self.starts[-1]),
            total_edges=self.edges,
            kinds=self._kinds(drawn),
            generation=self.generation,
            path=tuple(range(on_path)),  # seeds come first, in their order
        )

    def _chosen(self, seeds: list[int], limit: int, report: Report) -> NDArray[np.uint32]:
        """Return the nodes around the seeds, which come first, or the most important ones without seeds."""
        rows = self.rows
        if seeds:
            return drawing.neighbourhood(rows, seeds, limit, report=report).nodes
        order = np.argsort(-self.degrees, kind="stable").astype(np.uint32)
        if len(order) <= limit:
            return order
        count = max(limit // _OVERVIEW, 1)
        heads = [n for n in order[: 2 * count + _SPARE].tolist() if not self._is_layout(n)]
        while True:
            nodes = drawing.neighbourhood(rows, heads[:count], limit, report=report).nodes
            if len(nodes) >= limit or count >= limit:
                return nodes
            count = min(2 * count, limit)  # the components of these nodes are small
            heads = [n for n in order[: 2 * count].tolist() if not self._is_layout(n)]

    def _is_layout(self, node: int) -> bool:
        """Return whether a node is a word of the layout; passages are not, whatever their title."""
        at = int(np.searchsorted(self.starts, node, "right")) - 1
        block = self.drawable.blocks[at]
        return block.unit is None and is_layout_word(block.title(node - int(self.starts[at])))

    def _with_path(self, path: NDArray[np.uint32], edges: drawing.InducedEdges) -> drawing.InducedEdges:
        """Return `edges` together with the edges along a path, whose nodes are numbered first."""
        drawn = set(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True))
        rows = self.rows
        added = []
        for at in range(len(path) - 1):
            if (at, at + 1) not in drawn:
                first, last = int(rows.indptr[path[at]]), int(rows.indptr[path[at] + 1])
                place = first + int(np.searchsorted(rows.indices[first:last], path[at + 1]))
                added.append((at, at + 1, float(rows.weights[place])))
        if not added:
            return edges
        sources = np.append(edges.sources, [row[0] for row in added]).astype(np.uint32)
        targets = np.append(edges.targets, [row[1] for row in added]).astype(np.uint32)
        weights = np.append(edges.weights, [row[2] for row in added])
        order = np.lexsort((targets, sources))
        return drawing.InducedEdges(sources[order], targets[order], weights[order], edges.total)

    def _node(self, node: int, community: int, x: float, y: float, seed: bool) -> GraphNode:
        at = int(np.searchsorted(self.starts, node, "right")) - 1
        block, number = self.drawable.blocks[at], node - int(self.starts[at])
        title = block.title(number)
        return GraphNode(
            id=node,
            kind=block.kind if isinstance(block.kind, str) else block.kind(number),
            title=title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…",
            weight=int(self.degrees[node]),
            community=community,
            x=x,
            y=y,
            unit=None if block.unit is None else block.unit(number),
            inspects=block.inspects,
            seed=seed,
        )

    def _edge_kind(self, one: int, other: int) -> str:
        own = self.drawable
        return own.edges_between.get((min(one, other), max(one, other)), own.edge)

    def _kinds(self, drawn: Sequence[GraphNode]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for block in self.drawable.blocks:
            if not isinstance(block.kind, str):
                for node in drawn:
                    counts[node.kind] = counts.get(node.kind, 0) + 1
                break
            counts[block.kind] = counts.get(block.kind, 0) + block.count
        return counts


@dataclass(frozen=True, slots=True)
class Drawings:
    """The graphs of a generation. Each is read on first use and cached until the generation is closed."""

    generation: Generation
    _open: dict[str, OpenGraph] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the graphs that the generation has."""
        stages = self.generation.stages
        return tuple(name for name, graph in registry().graphs.items() if set(graph.stages) <= stages.keys())

    @property
    def missing(self) -> dict[str, str]:
        """The graphs that the generation lacks, with the commands that add them."""
        stages = self.generation.stages
        return {
            name: graph.add
            for name, graph in registry().graphs.items()
            if not set(graph.stages) <= stages.keys()
        }

    def graph(self, name: str) -> OpenGraph:
        """Return a graph.

        Raises ModeUnavailable with the command that adds it, InputError for an unknown name.
        """
        found = self._open.get(name)
        if found is not None:
            return found
        source = registry().graphs.get(name) if isinstance(name, str) else None
        if source is None:
            raise InputError(
                f"unknown graph {str(name)[:200]!r}", hint=f"graphs: {', '.join(registry().graphs)}"
            )
        stages = self.generation.stages
        if not set(source.stages) <= stages.keys():
            raise ModeUnavailable(f"this index has no graph {name!r}", hint=f"add it with `{source.add}`")
        try:
            drawable = resolve(source.read)(stages)
        except KetragError:
            raise
        except Exception as error:
            raise ExtensionError(
                f"the graph {name} cannot be read: {type(error).__name__}: {error}"
            ) from error
        graph = OpenGraph(name, drawable, self.generation.number)
        return self._open.setdefault(name, graph)


def check_limit(limit: int) -> int:
    """Return the number of nodes to draw; InputError if it is out of bounds."""
    if not 1 <= whole("limit", limit) <= MOST_NODES:
        raise InputError(f"limit must be from 1 to {MOST_NODES:,}, got {limit}")
    return int(limit)


def nodes_of_units(graph: OpenGraph, units: Sequence[int], count: int) -> list[int]:
    """Return the nodes that belong to units of an index with `count` units."""
    for unit in units:
        if not 0 <= whole("unit", unit) < count:
            raise InputError(f"unit {unit} does not exist", hint=f"units are numbered from 0 to {count - 1}")
    found = graph.drawable.of_units(np.array(units, np.int64))
    return [int(node) for node in found]
