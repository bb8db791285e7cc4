"use strict";
// A picture of a graph on a canvas: positions on the screen, drawing, and export as PNG and SVG.

const COLOURS = 10;
const LABELS = 60;
const MAIN = 20; // labels of so many nodes may cover less important nodes
const FAST = 4000; // from this many nodes and edges on, WebGL draws them
const CHUNK = 10000; // edges that are drawn at a time, so that the page stays responsive
const SLOW = 12; // milliseconds; if nodes and a chunk take longer, the last picture is moved instead of drawn again
const WIDEST = 2; // at most so much wider than high a picture is stretched, or higher than wide

/** Draws points and lines with WebGL2; `create` returns null if the browser has none. */
class FastLayer {
  static create(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: false, premultipliedAlpha: true, preserveDrawingBuffer: true });
    return gl ? new FastLayer(canvas, gl) : null;
  }

  constructor(canvas, gl) {
    this.canvas = canvas;
    this.gl = gl;
    const vertex = `#version 300 es
in vec2 place; in vec3 colour; in float size; uniform vec4 view; uniform vec2 half_size; out vec3 shade; out float wide;
void main() { vec2 p = (place * view.zw + view.xy) / half_size - 1.0; gl_Position = vec4(p.x, -p.y, 0, 1);
gl_PointSize = size; shade = colour; wide = size; }`;
    const points = `#version 300 es
precision mediump float; in vec3 shade; in float wide; out vec4 paint;
void main() { float rim = 0.5 - length(gl_PointCoord - 0.5); float part = clamp(rim * wide, 0.0, 1.0);
if (part == 0.0) discard; paint = vec4(shade * part, part); }`;
    const lines = `#version 300 es
precision mediump float; in vec3 shade; uniform float alpha; out vec4 paint;
void main() { paint = vec4(shade * alpha, alpha); }`;
    this.programs = [this.program(vertex, points), this.program(vertex, lines)];
    this.buffers = ["place", "colour", "size", "ends"].map(() => gl.createBuffer());
  }

  program(vertex, fragment) {
    const { gl } = this;
    const made = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(made, shader);
    }
    ["place", "colour", "size"].forEach((name, at) => gl.bindAttribLocation(made, at, name));
    gl.linkProgram(made);
    return made;
  }

  load(places, colours, sizes, ends) {
    const { gl } = this;
    [places, colours, sizes].forEach((values, at) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[at]);
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, [2, 3, 1][at], gl.FLOAT, false, 0, 0);
    });
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[3]);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, ends, gl.STATIC_DRAW);
    this.counts = [places.length / 2, ends.length];
  }

  get edges() { return this.counts[1] / 2; }

  /**
   * Draw the nodes, if `first` is 0, and the edges from `first` to `last` of the buffer behind what is drawn. The
   * buffer is in an order that makes any part of it a sample.
   */
  draw(view, alpha, first, last) {
    const { gl, canvas } = this;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.enable(gl.BLEND);
    if (!first) {
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
      this.use(0, view);
      gl.drawArrays(gl.POINTS, 0, this.counts[0]);
    }
    const count = 2 * (Math.min(last, this.edges) - first);
    if (count <= 0) return;
    gl.blendFunc(gl.ONE_MINUS_DST_ALPHA, gl.ONE);
    gl.uniform1f(gl.getUniformLocation(this.use(1, view), "alpha"), alpha);
    gl.drawElements(gl.LINES, count, gl.UNSIGNED_INT, 8 * first);
  }

  use(lines, view) {
    const { gl, canvas } = this;
    const program = this.programs[lines];
    gl.useProgram(program);
    gl.uniform4f(gl.getUniformLocation(program, "view"), ...view);
    gl.uniform2f(gl.getUniformLocation(program, "half_size"), canvas.width / 2, canvas.height / 2);
    return program;
  }

  /** Wait until everything is drawn. */
  finish() { this.gl.readPixels(0, 0, 1, 1, this.gl.RGBA, this.gl.UNSIGNED_BYTE, new Uint8Array(4)); }
}

/** A view (ketrag/graph-view/1) on two canvases in a box: WebGL below if there is much to draw, 2D above. */
class GraphPicture {
  constructor() {
    this.view = null;
    this.hidden = new Set(); // ids of nodes
    this.off = new Set(); // numbers of kinds
    this.seeds = new Set();
    this.path = new Set();
    this.least = 0; // edges with a smaller weight are left out
    this.selected = -1;
    this.hover = -1;
    this.sizeBy = "degree";
    this.colourBy = "kind";
    [this.x, this.y, this.scale] = [0, 0, 1];
    this.stretch = [1, 1];
    this.budget = 20000; // edges that are drawn while the picture moves
    this.drawn = -1; // when the last frame of a movement was drawn
    this.widths = new Map();
    this.fastCanvas = made("canvas", { "aria-hidden": "true" });
    this.canvas = made("canvas", { tabindex: "0", role: "application", "aria-roledescription": "graph", class: "graph-canvas", "aria-label": "graph" });
    this.box = made("div", { class: "graph-box" }, this.fastCanvas, this.canvas);
  }

  /** Take another view: its edges of each node, its order of importance, its sizes. */
  take(view) {
    this.view = view;
    this.hidden.clear();
    this.off.clear();
    this.least = 0;
    this.hover = -1;
    const { id, seed, weight } = view.nodes;
    const { source, target } = view.edges;
    this.seeds = new Set(seed);
    this.path = new Set((view.path || []).slice(1).map((node, at) => this.pair(view.path[at], node)));
    const starts = new Uint32Array(id.length + 1);
    for (let edge = 0; edge < source.length; edge += 1) { starts[source[edge] + 1] += 1; starts[target[edge] + 1] += 1; }
    for (let node = 0; node < id.length; node += 1) starts[node + 1] += starts[node];
    const [next, list] = [starts.slice(), new Uint32Array(2 * source.length)];
    for (let edge = 0; edge < source.length; edge += 1) { list[next[source[edge]]++] = edge; list[next[target[edge]]++] = edge; }
    this.starts = starts;
    this.list = list;
    this.ranks = null;
    const first = new Uint8Array(id.length);
    for (const node of seed) first[node] = 1;
    this.order = Uint32Array.from(id.keys()).sort((a, b) => first[b] - first[a] || weight[b] - weight[a] || a - b);
    this.measure();
  }

  pair(a, b) { return Math.min(a, b) * this.view.nodes.id.length + Math.max(a, b); }

  /** The numbers of the edges of a node. */
  edgesOf(node) { return this.list.subarray(this.starts[node], this.starts[node + 1]); }

  other(edge, node) {
    const { source, target } = this.view.edges;
    return source[edge] === node ? target[edge] : source[edge];
  }

  /** The nodes that are linked to a node by edges that are shown. */
  neighbours(node) {
    const found = [];
    for (const edge of this.edgesOf(node)) {
      const other = this.other(edge, node);
      if (this.shown(other) && this.strong(edge)) found.push(other);
    }
    return found;
  }

  shown(node) {
    return !this.hidden.has(this.view.nodes.id[node]) && !this.off.has(this.view.nodes.kind[node]);
  }

  strong(edge) { return this.view.edges.weight[edge] >= this.least; }

  /** PageRank of the drawn nodes, with damping 0.85. */
  pageRank() {
    const { source, target, weight } = this.view.edges;
    const n = this.view.nodes.id.length;
    const sums = new Float64Array(n);
    source.forEach((a, edge) => { sums[a] += weight[edge]; sums[target[edge]] += weight[edge]; });
    let now = new Float64Array(n).fill(1 / n);
    for (let step = 0; step < 30; step += 1) {
      let idle = 0;
      for (let node = 0; node < n; node += 1) if (!sums[node]) idle += now[node];
      const next = new Float64Array(n).fill((0.15 + 0.85 * idle) / n);
      for (let edge = 0; edge < source.length; edge += 1) {
        const [a, b] = [source[edge], target[edge]];
        next[b] += 0.85 * now[a] * weight[edge] / sums[a];
        next[a] += 0.85 * now[b] * weight[edge] / sums[b];
      }
      now = next;
    }
    return now;
  }

  /** Compute the radius of each node. */
  measure() {
    const { id, weight } = this.view.nodes;
    const n = id.length;
    let value = (node) => weight[node];
    if (this.sizeBy === "pagerank") {
      this.ranks = this.ranks || this.pageRank();
      const mean = weight.reduce((sum, own) => sum + own, 0) / Math.max(n, 1);
      value = (node) => this.ranks[node] * n * mean; // about as large as by degree
    }
    const [base, step, most] = n > FAST ? [1, 0.5, 10] : n > 400 ? [2, 0.9, 12] : [3.5, 1.1, 15];
    this.radii = Float32Array.from(id, (_, node) => Math.min(base + step * Math.sqrt(value(node)), most) + (this.seeds.has(node) ? 2 : 0));
  }

  resize() {
    const { clientWidth, clientHeight } = this.box;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const changed = clientWidth !== this.wide || clientHeight !== this.high;
    for (const canvas of [this.canvas, this.fastCanvas]) {
      const [width, height] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)];
      if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    }
    this.ratio = ratio;
    this.stale = this.stale || changed;
    if (changed && this.view && clientWidth) { this.wide = clientWidth; this.high = clientHeight; this.fit(); }
    this.paint();
  }

  /** Show all nodes but the farthest, stretched to the shape of the box, with room for labels. */
  fit() {
    if (!this.view || !this.view.nodes.x.length) return;
    const range = (values) => {
      const sorted = Float64Array.from(values).sort();
      const cut = sorted.length > 400 ? Math.floor(sorted.length / 400) : 0;
      return [sorted[cut], sorted[sorted.length - 1 - cut]];
    };
    const [[left, right], [top, bottom]] = [range(this.view.nodes.x), range(this.view.nodes.y)];
    const { clientWidth, clientHeight } = this.box;
    const side = Math.min(90, clientWidth / 8);
    const across = (clientWidth - 2 * side) / Math.max(right - left, 0.05);
    const down = (clientHeight - 56) / Math.max(bottom - top, 0.05);
    this.scale = Math.min(across, down);
    this.stretch = [Math.min(across / this.scale, WIDEST), Math.min(down / this.scale, WIDEST)];
    this.stale = true;
    this.x = clientWidth / 2 - this.scale * this.stretch[0] * (left + right) / 2;
    this.y = clientHeight / 2 - this.scale * this.stretch[1] * (top + bottom) / 2;
  }

  zoom(factor, x = this.box.clientWidth / 2, y = this.box.clientHeight / 2) {
    const scale = Math.min(Math.max(this.scale * factor, 5), 5e6);
    this.x = x - (x - this.x) * scale / this.scale;
    this.y = y - (y - this.y) * scale / this.scale;
    this.scale = scale;
    this.move();
  }

  pan(x, y) {
    this.x += x;
    this.y += y;
    this.move();
  }

  /** Paint while the picture moves, and once more in full when it rests. */
  move() {
    this.stale = true;
    if (this.fast) {
      this.moving = true;
      clearTimeout(this.rest);
      this.rest = setTimeout(() => { this.moving = false; this.stale = true; this.paint(); }, 200);
    }
    this.paint();
  }

  /** Move what was drawn last to where it belongs now; false if that would leave most of the box empty. */
  shift() {
    if (!this.camera) return false;
    const [x, y, scale] = this.camera;
    const ratio = this.scale / scale;
    const [dx, dy] = [this.x - x * ratio, this.y - y * ratio];
    const { clientWidth: width, clientHeight: height } = this.box;
    const seen = Math.max(0, Math.min(width, dx + width * ratio) - Math.max(0, dx)) * Math.max(0, Math.min(height, dy + height * ratio) - Math.max(0, dy));
    if (ratio > 4 || seen < 0.4 * width * height) return false;
    for (const canvas of [this.canvas, this.fastCanvas]) canvas.style.transform = `translate(${dx}px,${dy}px) scale(${ratio})`;
    return true;
  }

  place(node) {
    const { x, y } = this.view.nodes;
    return [x[node] * this.scale * this.stretch[0] + this.x, y[node] * this.scale * this.stretch[1] + this.y];
  }

  /** The name of a node for people. Keywords and subjects are as they are in the text; of passages the offsets are left out. */
  name(node) {
    const { kind, title } = this.view.nodes;
    const part = /^(.+) \[\d+:\d+\]$/.exec(title[node]);
    if (part) return `${part[1]} (passage)`;
    return ["passage", "keyword", "subject"].includes(this.view.kinds[kind[node]]) ? title[node] : properName(title[node]);
  }

  /** The colours of the page's scheme, light or dark. */
  palette() {
    const style = getComputedStyle(this.box);
    const own = (name) => style.getPropertyValue(name).trim();
    return { ink: own("--ink"), soft: own("--soft"), paper: own("--card"), accent: own("--accent"), kinds: Array.from({ length: COLOURS }, (_, number) => own(`--g${number}`)) };
  }

  colourOf(node, palette) {
    const { kind, community } = this.view.nodes;
    return palette.kinds[(this.colourBy === "kind" ? kind : community)[node] % COLOURS];
  }

  nodeAt(x, y) {
    if (!this.view) return -1;
    let [best, least] = [-1, 18];
    for (let node = 0; node < this.view.nodes.id.length; node += 1) {
      const [nx, ny] = this.place(node);
      const far = Math.hypot(nx - x, ny - y) - this.radii[node];
      if (far < least && this.shown(node)) { least = far; best = node; }
    }
    return best;
  }

  /** Fill the buffers of WebGL again, after colours, sizes or visibility have changed. */
  recolour() {
    if (!this.view) return;
    const { id, x, y } = this.view.nodes;
    const { source, target } = this.view.edges;
    this.fast = null;
    if (id.length + source.length > FAST) {
      this.layer = this.layer === undefined ? FastLayer.create(this.fastCanvas) : this.layer;
      this.fast = this.layer;
    }
    this.fastCanvas.hidden = !this.fast;
    if (this.fast) {
      const palette = this.palette();
      const numbers = palette.kinds.map((colour) => parseInt(colour.slice(1), 16));
      const group = this.colourBy === "kind" ? this.view.nodes.kind : this.view.nodes.community;
      const [places, colours, sizes] = [new Float32Array(2 * id.length), new Float32Array(3 * id.length), new Float32Array(id.length)];
      const shown = Uint8Array.from(id, (_, node) => this.shown(node));
      for (let node = 0; node < id.length; node += 1) {
        places[2 * node] = x[node];
        places[2 * node + 1] = y[node];
        const number = numbers[group[node] % COLOURS];
        colours[3 * node] = (number >> 16) / 255;
        colours[3 * node + 1] = ((number >> 8) & 255) / 255;
        colours[3 * node + 2] = (number & 255) / 255;
        sizes[node] = shown[node] ? 2 * this.radii[node] * this.ratio : 0;
      }
      const ends = new Uint32Array(2 * source.length);
      const step = source.length % 7919 ? 7919 : 7907; // primes: every edge once, in a mixed order
      let filled = 0;
      for (let at = 0, edge = 0; at < source.length; at += 1, edge = (edge + step) % source.length) {
        if (shown[source[edge]] && shown[target[edge]] && this.strong(edge)) { ends[filled++] = source[edge]; ends[filled++] = target[edge]; }
      }
      this.fast.load(places, colours, sizes, ends.subarray(0, filled));
      this.slow = undefined;
    }
    this.stale = true;
    this.paint();
  }

  paint() {
    if (this.frame || !this.view) return;
    this.frame = requestAnimationFrame((now) => {
      this.frame = 0;
      if (!(this.moving && this.slow && this.shift())) this.draw(now);
    });
  }

  /** Draw the nodes and some edges with WebGL; the other edges follow in later frames. */
  drawFast(now) {
    this.adapt(now);
    this.stale = false;
    cancelAnimationFrame(this.further);
    const { ratio } = this;
    const [across, down] = this.stretch;
    const view = [this.x * ratio, this.y * ratio, this.scale * across * ratio, this.scale * down * ratio];
    const all = this.fast.edges;
    const alpha = Math.min(0.35, 0.04 + 3000 / (1 + all));
    const begun = performance.now();
    let done = Math.min(all, this.moving && !this.slow ? Math.round(this.budget) : CHUNK);
    this.fast.draw(view, alpha, 0, done);
    if (this.slow === undefined) {
      this.fast.finish();
      this.slow = performance.now() - begun > SLOW;
    }
    const more = () => {
      if (this.moving || this.stale || done >= all) return;
      const next = Math.min(all, done + (this.slow ? CHUNK : 10 * CHUNK));
      this.fast.draw(view, alpha, done, next);
      done = next;
      this.further = requestAnimationFrame(more);
    };
    if (!this.moving) this.further = requestAnimationFrame(more);
    this.complete = () => { this.fast.draw(view, alpha, done, all); done = all; };
  }

  /** Draw fewer edges in the next frame if the last ones took too long, and more if they were quick. */
  adapt(now) {
    const took = now - this.drawn;
    const follows = this.moving && this.drawn >= 0;
    this.drawn = this.moving ? now : -1;
    if (!follows) return;
    if (took > 28) this.budget = Math.max(2000, this.budget * 0.7);
    else if (took < 20) this.budget = Math.min(1e6, this.budget * 1.2);
  }

  draw(now = 0) {
    const { canvas, ratio } = this;
    const palette = this.palette();
    const pen = canvas.getContext("2d");
    this.camera = [this.x, this.y, this.scale];
    for (const own of [canvas, this.fastCanvas]) own.style.transform = "";
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    const near = this.hover >= 0 && this.hover !== this.selected ? this.hover : this.selected;
    const lit = near < 0 ? [] : this.edgesOf(near);
    if (this.fast) { if (this.stale) this.drawFast(now); } else this.drawEdges(pen, palette, lit.length > 0);
    pen.strokeStyle = palette.ink;
    pen.globalAlpha = 0.85;
    pen.lineWidth = 1.6;
    pen.beginPath();
    for (const edge of lit.slice(0, 5000)) this.line(pen, edge);
    pen.stroke();
    this.drawPath(pen, palette);
    pen.globalAlpha = 1;
    if (!this.fast) this.drawNodes(pen, palette, near);
    for (const node of new Set([this.selected, near])) {
      if (node < 0 || !this.shown(node)) continue;
      const [x, y] = this.place(node);
      pen.strokeStyle = palette.ink;
      pen.lineWidth = 2.5;
      pen.beginPath();
      pen.arc(x, y, this.radii[node] + 3, 0, 7);
      pen.stroke();
    }
    this.drawLabels(pen, palette, near);
  }

  line(pen, edge) {
    const [a, b] = [this.view.edges.source[edge], this.view.edges.target[edge]];
    if (!this.shown(a) || !this.shown(b) || !this.strong(edge)) return;
    pen.moveTo(...this.place(a));
    pen.lineTo(...this.place(b));
  }

  /** Edges in three widths: the heaviest twentieth, the heavier quarter, the others. */
  drawEdges(pen, palette, dimmed) {
    const { weight } = this.view.edges;
    const sorted = Float64Array.from(weight).sort();
    const bounds = [0.95, 0.75].map((part) => sorted[Math.floor(part * sorted.length)]);
    const classes = [[], [], []];
    for (let edge = 0; edge < weight.length; edge += 1) {
      classes[sorted[0] === weight[edge] || weight[edge] < bounds[1] ? 2 : weight[edge] < bounds[0] ? 1 : 0].push(edge);
    }
    pen.strokeStyle = palette.soft;
    const part = Math.min(1, 600 / (1 + weight.length)) ** 0.5;
    [2, 1, 0].forEach((level) => {
      pen.globalAlpha = (dimmed ? 0.3 : 1) * (0.25 + 0.35 * part) * [1, 0.9, 0.75][level];
      pen.lineWidth = [2.6, 1.7, 1][level];
      pen.beginPath();
      for (const edge of classes[level]) this.line(pen, edge);
      pen.stroke();
    });
    pen.globalAlpha = 1;
  }

  drawPath(pen, palette) {
    const nodes = this.view.path || [];
    if (nodes.length < 2) return;
    pen.globalAlpha = 1;
    pen.strokeStyle = palette.accent;
    pen.lineWidth = 4;
    pen.beginPath();
    nodes.forEach((node, at) => { if (at) pen.lineTo(...this.place(node)); else pen.moveTo(...this.place(node)); });
    pen.stroke();
  }

  drawNodes(pen, palette, near) {
    const close = near < 0 ? null : new Set([near, ...this.neighbours(near)]);
    for (let at = this.order.length - 1; at >= 0; at -= 1) {
      const node = this.order[at];
      if (!this.shown(node)) continue;
      const [x, y] = this.place(node);
      if (x < -20 || y < -20 || x > this.box.clientWidth + 20 || y > this.box.clientHeight + 20) continue;
      pen.globalAlpha = close && !close.has(node) ? 0.35 : 1;
      pen.beginPath();
      pen.arc(x, y, this.radii[node], 0, 7);
      pen.fillStyle = this.colourOf(node, palette);
      pen.fill();
      pen.lineWidth = 1.5;
      pen.strokeStyle = palette.paper;
      pen.stroke();
      if (!this.seeds.has(node)) continue;
      pen.strokeStyle = palette.ink;
      pen.lineWidth = 2;
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  /** Nodes with a label, and where: names of the most important nodes, away from each other and from large nodes. */
  labels(near, wideOf) {
    const { clientWidth, clientHeight } = this.box;
    const boxes = [];
    const first = near < 0 ? [] : [near, ...this.neighbours(near).slice(0, 30)];
    const most = Math.min(LABELS, Math.max(10, Math.round(clientWidth * clientHeight / 9000)));
    const found = [];
    const candidates = [];
    for (const node of new Set([...(this.view.path || []), ...first, ...this.order.subarray(0, this.moving ? 300 : 2000)])) {
      if (!this.shown(node)) continue;
      const [x, y] = this.place(node);
      if (x < 0 || y < 0 || x > clientWidth || y > clientHeight) continue;
      candidates.push([node, x, y]);
    }
    const discs = candidates.slice(0, 200);
    const onPath = (this.view.path || []).length; // their labels come first, and may cover other nodes
    for (const [number, [node, x, y]] of candidates.entries()) {
      if (found.length >= most) break;
      const text = short(this.name(node).replace(/\s+/g, " "), clientWidth < 500 ? 20 : 28);
      const wide = wideOf(text);
      const far = this.radii[node] + 4;
      const places = [[x + far, y], [x - far - wide, y], [x - wide / 2, y - far - 7], [x - wide / 2, y + far + 7]];
      const free = places.find(([left, middle]) => left > 2 && left + wide < clientWidth - 2 && middle > 9 && middle < clientHeight - 9
        && !boxes.some((box) => left < box[2] + 4 && left + wide > box[0] - 4 && middle - 8 < box[3] && middle + 8 > box[1])
        && !discs.some(([other, ox, oy], at) => number >= onPath && (at < MAIN || number >= MAIN) && other !== node && this.radii[other] > 4 && ox + this.radii[other] > left
          && ox - this.radii[other] < left + wide && oy + this.radii[other] > middle - 7 && oy - this.radii[other] < middle + 7));
      if (!free) continue;
      boxes.push([free[0], free[1] - 8, free[0] + wide, free[1] + 8]);
      found.push({ node, text, left: free[0], middle: free[1] });
    }
    return found;
  }

  drawLabels(pen, palette, near) {
    pen.font = "13px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    const wideOf = (text) => {
      if (!this.widths.has(text)) this.widths.set(text, pen.measureText(text).width);
      return this.widths.get(text);
    };
    for (const { text, left, middle } of this.labels(near, wideOf)) {
      pen.strokeStyle = palette.paper;
      pen.lineWidth = 4;
      pen.strokeText(text, left, middle);
      pen.fillStyle = palette.ink;
      pen.fillText(text, left, middle);
    }
  }

  /** The line below an exported picture: what it is of, and how much of it. */
  caption() { return `${this.view.graph}: ${this.counts.textContent}`; }

  /** The picture with its counts as a canvas. */
  png() {
    this.moving = false;
    this.draw();
    if (this.fast) this.complete();
    const { width, height } = this.canvas;
    const whole = made("canvas", { width, height: height + 30 * this.ratio });
    const pen = whole.getContext("2d");
    const palette = this.palette();
    pen.fillStyle = palette.paper;
    pen.fillRect(0, 0, width, whole.height);
    if (this.fast) pen.drawImage(this.fastCanvas, 0, 0);
    pen.drawImage(this.canvas, 0, 0);
    pen.fillStyle = palette.ink;
    pen.font = `${13 * this.ratio}px system-ui, sans-serif`;
    pen.fillText(this.caption(), 10 * this.ratio, height + 20 * this.ratio);
    return whole;
  }

  /** The picture with its counts as the text of an SVG file. */
  svg() {
    const palette = this.palette();
    const { clientWidth: width, clientHeight: height } = this.box;
    const safe = (text) => text.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);
    const fixed = (number) => number.toFixed(1);
    const { source, target, weight } = this.view.edges;
    const out = [`<svg xmlns="${SVG}" viewBox="0 0 ${width} ${height + 30}" width="${width}" height="${height + 30}" font-family="system-ui, sans-serif" font-size="13">`,
      `<rect width="100%" height="100%" fill="${palette.paper}"/>`, `<g stroke="${palette.soft}" stroke-opacity="0.5">`];
    source.forEach((a, edge) => {
      const b = target[edge];
      if (!this.shown(a) || !this.shown(b) || !this.strong(edge)) return;
      const [[x1, y1], [x2, y2]] = [this.place(a), this.place(b)];
      const path = this.path.has(this.pair(a, b)) ? ` stroke="${palette.accent}" stroke-opacity="1" stroke-width="4"` : "";
      out.push(`<line x1="${fixed(x1)}" y1="${fixed(y1)}" x2="${fixed(x2)}" y2="${fixed(y2)}"${path}><title>${weight[edge]}</title></line>`);
    });
    out.push(`</g><g stroke="${palette.paper}">`);
    for (let at = this.order.length - 1; at >= 0; at -= 1) {
      const node = this.order[at];
      if (!this.shown(node)) continue;
      const [x, y] = this.place(node);
      out.push(`<circle cx="${fixed(x)}" cy="${fixed(y)}" r="${fixed(this.radii[node])}" fill="${this.colourOf(node, palette)}"><title>${safe(this.view.nodes.title[node])}</title></circle>`);
    }
    out.push(`</g><g fill="${palette.ink}" stroke="${palette.paper}" stroke-width="4" paint-order="stroke" stroke-linejoin="round">`);
    const pen = this.canvas.getContext("2d");
    for (const { text, left, middle } of this.labels(this.selected, (own) => pen.measureText(own).width)) {
      out.push(`<text x="${fixed(left)}" y="${fixed(middle + 4)}">${safe(text)}</text>`);
    }
    out.push(`</g><text x="10" y="${height + 20}" fill="${palette.ink}">${safe(this.caption())}</text></svg>`);
    return `${out.join("\n")}\n`;
  }

  /** Offer a picture as a download. */
  save(kind) {
    if (!this.view) return;
    const href = kind === "svg" ? `data:image/svg+xml;charset=utf-8,${encodeURIComponent(this.svg())}` : this.png().toDataURL("image/png");
    made("a", { href, download: `graph-${this.view.graph}.${kind}` }).click();
  }
}
