"""Pictures of graphs: layout, the browser's first picture, panning and zooming, a neighbourhood, and the page's size."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from common import ROOT, arguments, publish, target
from common import result_table as table
from ketrag_fast.apps.server.replies import json_bytes
from ketrag_fast.kernels import drawing
from ketrag_fast.page.assets import FILES, content, graph_page
from ketrag_fast.query.graph_view import OpenGraph
from ketrag_fast.systems.spec.drawing import DrawableGraph, NodeBlock

sys.path.insert(0, str(ROOT))

from tests.support.browser import Browser, browser

EDGES = 3
PICTURE = 300
FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
MOVE = """
new Promise((done) => {
  const times = [];
  const begun = performance.now();
  let last = begun;
  const step = (now) => {
    times.push(now - last);
    last = now;
    const there = times.length %% 40 < 20;
    if (times.length %% 2) panel.pan(there ? 3 : -3, 2); else panel.zoom(there ? 1.01 : 0.99);
    if (now - begun < %d) requestAnimationFrame(step); else done([times.length / (now - begun) * 1000, times.length]);
  };
  requestAnimationFrame(step);
})
"""
SHOW = """
(async () => {
  const begun = performance.now();
  panel.show(data(%s));
  await %s;
  return performance.now() - begun;
})()
"""


def grown(nodes: int) -> OpenGraph:
    """A graph in which each new node is linked to three earlier ones, the earliest most often."""
    random = np.random.default_rng(1)
    targets = np.repeat(np.arange(1, nodes, dtype=np.uint32), EDGES)
    sources = (random.random(len(targets)) ** 2 * targets).astype(np.uint32)
    names = NodeBlock("name", nodes, lambda node: f"node {node}", lambda name: [], lambda name: [])
    weights = np.ones(len(targets))
    graph = DrawableGraph((names,), sources, targets, weights, lambda units: units, "names")
    return OpenGraph("walk", graph, 1)


def measured(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the clock and of processor time."""
    clock, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - clock, time.process_time() - processor


def descendants() -> list[int]:
    """The processes that this one has started, and theirs."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found = [os.getpid()]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


def processor_seconds() -> float:
    """Processor time of the browser: that of all processes that this one has started."""
    ticks = 0
    for process in descendants():
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(fields[at]) for at in (11, 12, 13, 14))
    return ticks / os.sysconf("SC_CLK_TCK")


def layouts(graph: OpenGraph) -> list[list[Any]]:
    """Rows of the layout and the communities of a graph."""
    rows: list[list[Any]] = []
    places = []
    size = [len(graph.rows.indptr) - 1, graph.edges]
    for threads in (1, 2):
        clock, processor = measured(
            lambda threads=threads: places.append(drawing.layout(graph.rows, threads=threads))
        )
        bound = target(clock, most=10) if threads == 2 else ""
        rows.append([f"layout, threads: {threads}", *size, clock, processor, bound])
    same = bool(np.array_equal(places[0], places[1]))
    rows.append(["positions equal on one and two threads", *size, same, "", "yes"])
    rows.append(["communities", *size, *measured(lambda: drawing.communities(graph.rows)), ""])
    return rows


def browsing(large: OpenGraph, huge: OpenGraph, nodes: int, moved: int) -> list[list[Any]]:
    """Rows of the browser: the first picture of a large graph, moving it, and a neighbourhood."""
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "large.html"
        view = large.view([], nodes)
        file.write_text(graph_page(view, "large"), "utf-8")
        size = [len(view.nodes), len(view.edges)]
        with browser(Path(name) / "profile") as window:
            window.look(1280, 900)
            window.go("about:blank")
            before, clock = processor_seconds(), time.perf_counter()
            window.go(file.as_uri())
            window.wait("!!(panel && panel.view)", 120)
            window.value(FRAME)
            clock = time.perf_counter() - clock
            rows.append(
                ["first picture, s", *size, clock, processor_seconds() - before, target(clock, most=3)]
            )
            drawn = window.value("panel.fast ? 'WebGL' : '2D canvas'")
            window.value(MOVE % moved)  # until the number of edges fits
            window.value("new Promise((done) => setTimeout(done, 300))")
            before = processor_seconds()
            rate, frames = window.value(MOVE % moved)
            spent = (processor_seconds() - before) / frames
            rows.append([f"frames a second, {drawn}", *size, rate, spent, target(rate, least=30)])
            way = "the last picture is moved" if window.value("panel.slow") else "drawn again"
            rows.append([f"while it moves: {way}", *size, "", "", ""])
            rows += neighbourhoods(window, huge)
            others = [
                url for url in window.requests if not url.startswith(("file:", "about:", "data:", "blob:"))
            ]
            rows.append(
                ["requests to other hosts", *size, len(others), "", "0" + (": missed" if others else "")]
            )
    return rows


def neighbourhoods(window: Browser, huge: OpenGraph) -> list[list[Any]]:
    """Rows of pictures around nodes of a large graph: the request and the browser's part."""
    total = len(huge.rows.indptr) - 1
    window.value(SHOW % (json.dumps(json_bytes(huge.view([1], PICTURE).to_json()).decode()), FRAME))
    rows = []
    for node in (0, total // 2, total - 1):
        before, clock = processor_seconds() + time.process_time(), time.perf_counter()
        text = json_bytes(huge.view([node], PICTURE).to_json()).decode()
        asked = 1000 * (time.perf_counter() - clock)
        shown = window.value(SHOW % (json.dumps(text), FRAME))
        spent = processor_seconds() + time.process_time() - before
        around = f"around node {node:,}, {len(huge.rows.indices[slice(*huge.rows.indptr[node : node + 2])]):,} edges: ms"
        rows.append([around, total, huge.edges, asked + shown, spent, target(asked + shown, most=200)])
    return rows


def main() -> None:
    """Measure."""
    args = arguments(__doc__).parse_args()
    nodes, many, moved = (2_000, 20_000, 200) if args.smoke else (100_000, 1_000_000, 4_000)
    large, huge = grown(nodes), grown(many)
    _ = large.rows, huge.rows  # built when a graph is first drawn, and kept
    tables = [table("Layout", ["step", "nodes", "edges", "s", "processor s", "target"], layouts(large))]
    columns = ["picture", "nodes", "edges", "value", "processor s", "target"]
    tables.append(table("Browser", columns, browsing(large, huge, nodes, moved)))
    sizes: list[list[Any]] = [[name, len(content(name))] for name, _ in FILES.values()]
    sizes.append(["all", sum(size for _, size in sizes)])
    tables.append(
        table(
            "Size",
            ["file", "bytes", "target"],
            [[*row, ""] for row in sizes[:-1]] + [[*sizes[-1], target(sizes[-1][1], most=300_000)]],
        )
    )
    notes = [
        "Each node is linked to three earlier ones. Pictures around a node have 300 nodes; their time is that of the"
        " request and of the browser, with the rows of the graph in memory.",
        "The processor time of frames is that of one frame, of all processes of the browser.",
    ]
    publish(tables, "A generated graph; Chromium without a GPU (SwiftShader).", notes)


if __name__ == "__main__":
    main()
