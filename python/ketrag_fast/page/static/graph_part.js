"use strict";
// Parts of a view that a file holds: around nodes, on a path, with positions of their own.

/** The neighbours of each node, those with the heaviest edges first. */
function neighboursIn(view) {
  const { source, target, weight } = view.edges;
  const around = view.nodes.id.map(() => []);
  source.forEach((a, edge) => { around[a].push([target[edge], weight[edge]]); around[target[edge]].push([a, weight[edge]]); });
  return around.map((row) => row.sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([node]) => node));
}

/** The nodes around some of them, and their edges: breadth first, and each node adds about as many as the others. */
function partOf(view, seeds, limit, path = []) {
  const { source, target } = view.edges;
  const around = neighboursIn(view);
  const kept = [...new Set([...path, ...seeds])].slice(0, limit);
  const known = new Set(kept);
  const next = new Map();
  for (let first = 0; first < kept.length && kept.length < limit;) {
    const last = kept.length;
    for (let grew = true; grew && kept.length < limit;) {
      grew = false;
      for (const node of kept.slice(first, last)) {
        let at = next.get(node) || 0;
        while (at < around[node].length && known.has(around[node][at])) at += 1;
        next.set(node, at + 1);
        if (at < around[node].length && kept.length < limit) { known.add(around[node][at]); kept.push(around[node][at]); grew = true; }
      }
    }
    first = last;
  }
  const place = new Map(kept.map((node, number) => [node, number]));
  const edges = source.map((_, edge) => edge).filter((edge) => place.has(source[edge]) && place.has(target[edge]));
  const nodes = Object.fromEntries(Object.entries(view.nodes).filter(([name]) => name !== "seed")
    .map(([name, column]) => [name, kept.map((node) => column[node])]));
  nodes.seed = [...new Set([...path, ...seeds])].filter((node) => place.has(node)).map((node) => place.get(node));
  const part = {
    ...view, nodes, path: path.map((node) => place.get(node)),
    returned: { nodes: kept.length, edges: edges.length },
    edges: {
      source: edges.map((edge) => place.get(source[edge])), target: edges.map((edge) => place.get(target[edge])),
      kind: edges.map((edge) => view.edges.kind[edge]), weight: edges.map((edge) => view.edges.weight[edge]),
    },
  };
  if (kept.length <= 300) { settle(part); regroup(part); }
  return part;
}

/** Find the communities of a small view: each node takes the label that most of its edges lead to. */
function regroup(view) {
  const { source, target, weight } = view.edges;
  const label = view.nodes.id.map((_, node) => node);
  const rows = label.map(() => []);
  source.forEach((a, edge) => { rows[a].push([target[edge], weight[edge]]); rows[target[edge]].push([a, weight[edge]]); });
  for (let round = 0; round < 20; round += 1) {
    let changed = false;
    rows.forEach((row, node) => {
      const sums = new Map();
      for (const [other, own] of row) sums.set(label[other], (sums.get(label[other]) || 0) + own / Math.sqrt(rows[other].length));
      let best = label[node];
      for (const [own, sum] of sums) {
        const most = sums.get(best) || 0;
        if (sum > most + 1e-9 || (sum > most - 1e-9 && own < best)) best = own;
      }
      if (best !== label[node]) { label[node] = best; changed = true; }
    });
    if (!changed) break;
  }
  const sizes = new Map();
  for (const own of label) sizes.set(own, (sizes.get(own) || 0) + 1);
  const order = [...sizes.keys()].sort((a, b) => sizes.get(b) - sizes.get(a) || a - b);
  view.nodes.community = label.map((own) => order.indexOf(own));
}

/** Move the nodes of a small view by forces, from where they are: repulsion, edges as springs, a pull to the middle. */
function settle(view) {
  const { x, y } = view.nodes;
  const { source, target } = view.edges;
  const n = x.length;
  if (n < 3) { x.forEach((_, node) => { x[node] = node - (n - 1) / 2; y[node] = 0; }); return; }
  const side = Math.sqrt(n);
  const [midX, midY] = [x, y].map((values) => values.reduce((sum, value) => sum + value, 0) / n);
  const spread = Math.max(1e-6, ...x.map((value, node) => Math.hypot(value - midX, y[node] - midY)));
  for (let node = 0; node < n; node += 1) {
    const angle = 2.4 * node; // nodes at one place leave it in different directions
    x[node] = side * (x[node] - midX) / spread + 0.3 * Math.cos(angle);
    y[node] = side * (y[node] - midY) / spread + 0.3 * Math.sin(angle);
  }
  const edges = new Float64Array(n);
  source.forEach((a, edge) => { edges[a] += 1; edges[target[edge]] += 1; });
  for (let step = 0; step < 200; step += 1) {
    const [fx, fy] = [new Float64Array(n), new Float64Array(n)];
    for (let a = 0; a < n; a += 1) {
      for (let b = a + 1; b < n; b += 1) {
        const [dx, dy] = [x[a] - x[b], y[a] - y[b]];
        const push = 1.4 / Math.max(dx * dx + dy * dy, 0.01);
        fx[a] += push * dx; fy[a] += push * dy;
        fx[b] -= push * dx; fy[b] -= push * dy;
      }
      const pull = edges[a] ? 0.08 : 0.3;
      fx[a] -= pull * x[a]; fy[a] -= pull * y[a];
    }
    source.forEach((a, edge) => {
      const b = target[edge];
      const [dx, dy] = [x[a] - x[b], y[a] - y[b]];
      fx[a] -= 0.5 * dx; fy[a] -= 0.5 * dy;
      fx[b] += 0.5 * dx; fy[b] += 0.5 * dy;
    });
    const limit = 0.25 * side * (1 - step / 200);
    for (let node = 0; node < n; node += 1) {
      const far = Math.hypot(fx[node], fy[node]);
      const part = 0.25 * Math.min(1, limit / Math.max(far, 1e-9));
      x[node] += part * fx[node];
      y[node] += part * fy[node];
    }
  }
}

/** The nodes of a shortest path between two of a view; empty if no path exists. */
function pathIn(view, start, end) {
  const around = neighboursIn(view);
  const from = new Map([[start, start]]);
  const queue = [start];
  for (const node of queue) {
    for (const other of around[node]) if (!from.has(other)) { from.set(other, node); queue.push(other); }
  }
  if (!from.has(end)) return [];
  const path = [end];
  while (path[0] !== start) path.unshift(from.get(path[0]));
  return path;
}

/** The node of a name, or of a number such as #12: the exact title in any case, else one that contains the name. */
function nodeNamed(view, name) {
  const wanted = name.toLowerCase();
  const exact = view.nodes.id.findIndex((id, node) => `#${id}` === name || view.nodes.title[node].toLowerCase() === wanted);
  const node = exact >= 0 ? exact : view.nodes.title.findIndex((title) => title.toLowerCase().includes(wanted));
  if (node < 0) throw new Error(`this file has no node ${short(name, 80)}`);
  return node;
}

/** The picture that a request asks for, from the view that the file holds. */
function pictureIn(view, { around = [], to, limit }, overview) {
  if (to) {
    const path = pathIn(view, nodeNamed(view, around[0]), nodeNamed(view, to));
    if (!path.length) throw new Error("this file has no path between these nodes");
    return partOf(view, [], Math.max(limit || 60, path.length), path);
  }
  if (around.length) return partOf(view, around.map((name) => nodeNamed(view, name)), limit || 60);
  if (overview && view.nodes.id.length > 1.5 * overview) {
    const { weight, id } = view.nodes;
    const linked = new Set([...view.edges.source, ...view.edges.target]);
    const largest = id.map((_, node) => node).filter((node) => linked.has(node)).sort((a, b) => weight[b] - weight[a] || a - b).slice(0, Math.ceil(overview / 12));
    const part = partOf(view, largest, overview);
    part.nodes.seed = [];
    return part;
  }
  return view;
}
