"use strict";
// A graph with its tools: search, paths, filters, expand and collapse. Used by the page, and by pages without a server.

const PLAIN = { type: "button" };
/** Words for what colours and sizes show. */
const WORDS = { community: "group", degree: "links", pagerank: "importance" };

/**
 * `host.load({graph, around, to, question, limit})` returns a promise of a view (ketrag/graph-view/1);
 * `host.read(node)` one of [{title, text, open}] about a node; `host.graphs` are names; `host.moved(request, view, replace)`
 * is called when another picture is shown.
 */
class GraphPanel extends GraphPicture {
  constructor(root, host) {
    super();
    this.root = root;
    this.host = host;
    this.request = {};
    this.before = [];
    this.build();
    this.listen();
    new ResizeObserver(() => { this.resize(); }).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
  }

  build() {
    const button = (text, on, label) => made("button", { ...PLAIN, on, ...(label ? { "aria-label": label, title: label } : {}) }, text);
    const choice = (label, ...values) => made("select", { "aria-label": label }, ...values.map((value) => made("option", { value }, WORDS[value] || value)));
    this.choice = choice("graph");
    this.way = choice("explore from", "name", "question");
    this.search = made("input", { type: "search", maxlength: "500", placeholder: "Explore from a name", "aria-label": "name or question to explore from" });
    this.end = made("input", { type: "search", maxlength: "500", placeholder: "Path to another name", "aria-label": "name at the end of the shortest path" });
    this.form = made("form", { class: "row", autocomplete: "off" },
      made("label", {}, "Graph ", this.choice), ...(this.host.questions ? [made("label", {}, "from a ", this.way)] : []),
      this.search, this.end, made("button", { type: "submit" }, "Explore"));
    this.colour = choice("colour by", "kind", "community");
    this.size = choice("size by", "degree", "pagerank");
    this.weight = made("input", { type: "range", min: "0", max: "20", value: "0", step: "1", "aria-label": "least weight of edges" });
    this.backTo = button("Back", () => this.back(), "the picture before this one");
    this.unhide = button("", () => { this.hidden.clear(); this.recolour(); this.showHidden(); }, "show hidden nodes");
    this.tools = made("div", { class: "row graph-tools", role: "toolbar", "aria-label": "picture" },
      button("Overview", () => this.go({})), this.backTo, button("Fit", () => { this.fit(); this.paint(); }),
      button("+", () => this.zoom(1.4), "zoom in"), button("−", () => this.zoom(1 / 1.4), "zoom out"),
      made("label", {}, "Colour ", this.colour), made("label", {}, "Size ", this.size), made("label", {}, "Weight ", this.weight),
      button("PNG", () => this.save("png"), "save as PNG"), button("SVG", () => this.save("svg"), "save as SVG"), this.unhide);
    this.counts = made("p", { class: "about graph-counts", role: "status", "aria-live": "polite" });
    this.legend = made("ul", { class: "legend", "aria-label": "kinds of nodes" });
    this.side = made("aside", { class: "graph-side", "aria-label": "selected node" });
    this.said = made("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.list = new Uint32Array(0);
    this.rows = made("ol", { class: "names" });
    this.listed = made("details", {}, made("summary", {}, "Nodes as a list"), this.rows);
    this.listed.addEventListener("toggle", () => this.showRows());
    this.root.replaceChildren(this.form, this.tools, made("div", { class: "graph-parts" }, this.box, this.side), this.legend, this.counts, this.said, this.listed);
    this.setGraphs(this.host.graphs || []);
    this.showHidden();
    this.backTo.disabled = true;
  }

  setGraphs(names, chosen) {
    this.choice.replaceChildren(...names.map((name) => made("option", { value: name }, name)));
    if (chosen) this.choice.value = chosen;
    this.choice.parentElement.hidden = names.length < 2;
  }

  listen() {
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const [text, end] = [this.search.value.trim(), this.end.value.trim()];
      if (this.way.value === "question") this.go(text ? { question: text } : {});
      else if (text && end) this.go({ around: [text], to: end });
      else this.go(text || end ? { around: [text || end] } : {});
    });
    this.way.addEventListener("change", () => {
      const asks = this.way.value === "question";
      this.search.placeholder = asks ? "Explore from a question" : "Explore from a name";
      this.end.hidden = asks;
    });
    this.choice.addEventListener("change", () => this.go({}));
    this.colour.addEventListener("change", () => { this.coloured = true; this.colourBy = this.colour.value; this.showLegend(); this.recolour(); });
    this.size.addEventListener("change", () => { this.sizeBy = this.size.value; if (this.view) { this.measure(); this.recolour(); } });
    this.weight.addEventListener("input", () => this.setLeast(Number(this.weight.value) / 20));
    this.listenToPointers();
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  listenToPointers() {
    const { canvas } = this;
    const points = new Map();
    let [moved, apart] = [0, 0];
    canvas.addEventListener("pointerdown", (event) => {
      if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
      points.set(event.pointerId, [event.offsetX, event.offsetY]);
      [moved, apart] = [0, 0];
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = points.get(event.pointerId);
      if (!before) { this.point(this.nodeAt(event.offsetX, event.offsetY)); return; }
      points.set(event.pointerId, [event.offsetX, event.offsetY]);
      moved += Math.abs(event.offsetX - before[0]) + Math.abs(event.offsetY - before[1]);
      if (points.size === 1) this.pan(event.offsetX - before[0], event.offsetY - before[1]);
      else {
        const [a, b] = [...points.values()];
        const now = Math.hypot(a[0] - b[0], a[1] - b[1]);
        if (apart) this.zoom(now / apart, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
        apart = now;
      }
    });
    const end = (event) => {
      if (points.delete(event.pointerId) && event.type === "pointerup" && moved < 6) {
        this.select(this.nodeAt(event.offsetX, event.offsetY));
      }
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => this.point(-1));
    canvas.addEventListener("dblclick", () => { if (this.selected >= 0) this.expand(this.selected); });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
  }

  key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const step = steps[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step && event.shiftKey) this.pan(-60 * step[0], -60 * step[1]);
    else if (step) this.select(this.towards(...step));
    else if (event.key === "+" || event.key === "=") this.zoom(1.4);
    else if (event.key === "-") this.zoom(1 / 1.4);
    else if (event.key === "0") { this.fit(); this.paint(); }
    else if (event.key === "Enter" && this.selected >= 0) this.expand(this.selected);
    else if (event.key === "c" && this.selected >= 0) this.collapse(this.selected);
    else if ((event.key === "h" || event.key === "Delete") && this.selected >= 0) this.hide([this.selected]);
    else if (event.key === "b") this.back();
    else if (event.key === "Escape") { this.stay(); this.select(-1); }
    else return;
    event.preventDefault();
  }

  /** The nearest node in a direction from the selected one. */
  towards(dx, dy) {
    if (!this.view) return -1;
    if (this.selected < 0) return [...this.order].find((node) => this.shown(node)) ?? -1;
    const { x, y } = this.view.nodes;
    let best = this.selected;
    let least = Infinity;
    for (let node = 0; node < x.length; node += 1) {
      const across = (x[node] - x[this.selected]) * this.stretch[0];
      const down = (y[node] - y[this.selected]) * this.stretch[1];
      const along = across * dx + down * dy;
      if (node === this.selected || along <= 0 || !this.shown(node)) continue;
      const cost = along + 2 * Math.abs(across * dy + down * dx);
      if (cost < least) { least = cost; best = node; }
    }
    return best;
  }

  /** Ask the host for another picture. */
  async go(request, keep = -1) {
    const own = this.awaited = { ...request, graph: request.graph || this.choice.value };
    this.counts.textContent = "Drawing";
    try {
      const view = await this.host.load(own);
      if (own !== this.awaited) return;
      this.awaited = null;
      if (this.view) this.before = [...this.before.slice(-9), [this.request, this.view]];
      this.request = own;
      this.show(view, keep);
      if (this.host.moved) this.host.moved(own, view);
    } catch (error) {
      if (own === this.awaited) { this.awaited = null; this.counts.textContent = error.message; }
    }
  }

  /** Show the picture before this one. */
  back() {
    if (!this.before.length) return;
    this.awaited = null;
    let view;
    [this.request, view] = this.before.pop();
    this.show(view);
    if (this.host.moved) this.host.moved(this.request, view, true);
  }

  /** Keep the picture that is shown: a reply that comes later changes nothing. */
  stay() {
    if (!this.awaited) return;
    this.awaited = null;
    if (this.view) this.showCounts();
  }

  show(view, keep = -1) {
    this.take(view);
    if (!this.coloured) this.colour.value = this.colourBy = view.kinds.length > 2 ? "kind" : "community";
    if (view.graphs) this.setGraphs(view.graphs, view.graph);
    else if ([...this.choice.options].some((one) => one.value === view.graph)) this.choice.value = view.graph;
    this.backTo.disabled = !this.before.length;
    this.weight.value = "0";
    this.weight.title = "all edges";
    this.showLegend();
    this.showCounts();
    this.showHidden();
    this.showRows();
    this.canvas.setAttribute("aria-label", `graph ${view.graph}: ${this.counts.textContent}. `
      + "Arrow keys select a node, Enter expands it, C collapses it, H hides it, plus and minus zoom.");
    this.resize();
    this.fit();
    this.recolour();
    const { id, seed } = view.nodes;
    this.select(keep >= 0 ? id.indexOf(keep) : seed.length === 1 ? seed[0] : -1);
  }

  showCounts() {
    const { returned, total, nodes, path = [] } = this.view;
    this.counts.textContent = `${count(returned.nodes)} of ${count(total.nodes)} nodes · `
      + `${count(returned.edges)} of ${count(total.edges)} edges`
      + (path.length ? ` · the shortest path has ${count(path.length - 1)} ${path.length === 2 ? "edge" : "edges"}` : "")
      + (nodes.id.length ? "" : " · this graph is empty");
  }

  showLegend() {
    if (!this.view) return;
    const { counts, kinds, nodes } = this.view;
    const communities = [];
    const byKind = this.colourBy === "kind";
    if (!byKind) {
      const sizes = new Map();
      const heads = new Map();
      for (const node of this.order) {
        const own = nodes.community[node];
        sizes.set(own, (sizes.get(own) || 0) + 1);
        if (!heads.has(own)) heads.set(own, this.name(node));
      }
      const largest = [...sizes.keys()].sort((a, b) => sizes.get(b) - sizes.get(a) || a - b).slice(0, 6);
      communities.push(...largest.map((own) => made("li", {}, made("span", { class: `swatch c${own % COLOURS}` }), ` ${short(heads.get(own), 24)} ${count(sizes.get(own))}`)));
    }
    const drawn = new Array(kinds.length).fill(0);
    for (const kind of nodes.kind) drawn[kind] += 1;
    this.legend.replaceChildren(...kinds.map((kind, number) => {
      const box = made("input", { type: "checkbox" });
      box.checked = !this.off.has(number);
      box.addEventListener("change", () => {
        if (box.checked) this.off.delete(number); else this.off.add(number);
        this.recolour();
        this.showRows();
      });
      const swatch = byKind ? [made("span", { class: `swatch c${number % COLOURS}` })] : [];
      const of = counts[kind] > drawn[number] ? ` of ${count(counts[kind])}` : "";
      return made("li", {}, made("label", {}, box, ...swatch, `${kind} ${count(drawn[number])}${of}`));
    }), ...communities);
  }

  showHidden() {
    this.unhide.hidden = !this.hidden.size;
    this.unhide.textContent = `Show ${count(this.hidden.size)} hidden`;
  }

  /** The list of nodes, which can be read and used without the picture. */
  showRows() {
    if (!this.view || !this.listed.open) { this.rows.replaceChildren(); return; }
    const shown = [...this.order].filter((node) => this.shown(node)).slice(0, 200);
    this.rows.replaceChildren(...shown.map((node) => made("li", {}, made("button", { ...PLAIN, on: () => this.select(node) }, short(this.name(node), 60)))));
  }

  point(node) {
    if (node === this.hover) return;
    this.hover = node;
    this.canvas.classList.toggle("over", node >= 0);
    this.canvas.title = node < 0 ? "" : `${short(this.name(node), 200)} (${this.view.kinds[this.view.nodes.kind[node]]})`;
    this.paint();
  }

  /** Leave out the lightest part of the edges. */
  setLeast(part) {
    if (!this.view || !this.view.edges.weight.length) return;
    const sorted = Float64Array.from(this.view.edges.weight).sort();
    this.least = part ? sorted[Math.min(Math.floor(part * sorted.length), sorted.length - 1)] : 0;
    this.weight.title = part ? `at least ${this.least.toPrecision(3)}` : "all edges";
    this.weight.setAttribute("aria-valuetext", this.weight.title);
    this.recolour();
  }

  expand(node) {
    const own = `#${this.view.nodes.id[node]}`;
    const around = this.view.nodes.seed.map((seed) => `#${this.view.nodes.id[seed]}`).slice(-20);
    const limit = Math.min(Math.max(this.view.nodes.id.length, 40) + 40, 2000);
    const isPart = this.request.around || this.request.question;
    this.go({ graph: this.view.graph, around: [...new Set(isPart ? [...around, own] : [own])], limit }, this.view.nodes.id[node]);
  }

  /** Hide the neighbours of a node that nothing else is linked to. */
  collapse(node) {
    this.hide(this.neighbours(node).filter((other) => !this.seeds.has(other) && this.neighbours(other).every((own) => own === node)), node);
  }

  hide(nodes, keep = -1) {
    for (const node of nodes) this.hidden.add(this.view.nodes.id[node]);
    this.showHidden();
    this.recolour();
    this.select(keep);
  }

  async select(node) {
    if (!this.view) return;
    this.selected = node;
    this.paint();
    if (node < 0) {
      this.said.textContent = "";
      this.side.replaceChildren(made("p", { class: "about" }, "Select a node to see its links and sentences."));
      return;
    }
    const { id, title, kind, weight, community } = this.view.nodes;
    const button = (text, on, label) => made("button", { ...PLAIN, on, ...(label ? { "aria-label": label } : {}) }, text);
    const others = this.neighbours(node).sort((a, b) => weight[b] - weight[a] || a - b);
    const text = made("div", { class: "graph-text", "aria-live": "polite" });
    const about = `${this.view.kinds[kind[node]]} · ${count(weight[node])} links · group ${community[node] + 1}`;
    this.said.textContent = `${short(this.name(node), 100)}, ${about}`;
    this.side.replaceChildren(
      made("h3", {}, short(this.name(node), 300)),
      made("p", { class: "about" }, about),
      made("div", { class: "row" }, button("Expand", () => this.expand(node)), button("Collapse", () => this.collapse(node)),
        button("Only this", () => this.go({ graph: this.view.graph, around: [`#${id[node]}`], limit: 60 }, id[node])),
        button("Hide", () => this.hide([node])), button("Path from", () => { this.search.value = title[node]; this.end.focus(); }, "find a path from this node")),
      made("ul", { class: "names", "aria-label": "linked to" }, ...others.slice(0, 40).map((other) =>
        made("li", {}, button(short(this.name(other), 60), () => this.select(other))))),
      ...(others.length > 40 ? [made("p", { class: "about" }, `40 of ${count(others.length)} drawn neighbours`)] : []),
      text);
    try {
      const { unit, inspects } = this.view.nodes;
      const units = others.map((other) => unit[other]).filter((own) => own !== null).slice(0, 4);
      const parts = await this.host.read({ title: title[node], unit: unit[node], inspects: inspects[node], units });
      if (this.selected !== node) return;
      text.replaceChildren(...parts.map((part) => made("article", {}, made("p", { class: "place" }, part.title), made("p", { class: "text" }, part.text),
        ...(part.open ? [button("Show context", part.open)] : []))));
    } catch (error) { if (this.selected === node) text.replaceChildren(made("p", { class: "about" }, error.message)); }
  }
}
