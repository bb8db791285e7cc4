"use strict";
// The path of a question: terms, passages, the names that bridge them, and the sentences on the way.

/** The pairs of passages that the reasons name: unit to unit to what bridges them, and the titles of all. */
function pairsOf(passages) {
  const pairs = new Map();
  const places = new Map(passages.map((one) => [one.unit.id, one]));
  const pair = (a, b, bridges) => {
    if (!bridges.length) return;
    for (const [from, to] of [[a, b], [b, a]]) {
      if (!pairs.has(from)) pairs.set(from, new Map());
      if (!pairs.get(from).has(to)) pairs.get(from).set(to, bridges);
    }
  };
  for (const passage of passages) {
    for (const { chain, partner, between, bridges } of passage.why || []) {
      for (const place of chain || (partner ? [partner] : [])) if (!places.has(place.unit)) places.set(place.unit, place);
      if (chain) { pair(chain[0].unit, chain[1].unit, between); pair(chain[1].unit, passage.unit.id, bridges); }
      if (partner) pair(partner.unit, passage.unit.id, bridges);
    }
  }
  return { pairs, places };
}

/** Columns of nodes and the links between them: terms, passages, bridging names, passages, ... */
function pathOf(context, most = 8, deepest = 2) {
  const shown = context.passages.slice(0, most);
  const { pairs, places } = pairsOf(shown);
  const ranks = new Map(shown.map((one) => [one.unit.id, one.rank]));
  const [nodes, links, depths] = [new Map(), new Map(), new Map()];
  const node = (key, about) => { if (!nodes.has(key)) nodes.set(key, about); return key; };
  const link = (a, b) => links.set(`${a}\n${b}`, [a, b]);
  const reach = (unit, depth) => {
    const place = places.get(unit);
    depths.set(unit, depth);
    return node(`p${unit}`, { kind: "passage", column: 2 * depth + 1, text: place.title || place.document, rank: ranks.get(unit) || null });
  };
  // Reasons name partners both ways, so a path starts at the passage with most terms of the question.
  const terms = (passage) => new Set(wordsOf(passage)).size;
  for (const start of [...shown].sort((a, b) => terms(b) - terms(a) || a.rank - b.rank)) {
    if (depths.has(start.unit.id)) continue;
    reach(start.unit.id, 0);
    for (const word of wordsOf(start).slice(0, 4)) link(node(`t${word}`, { kind: "term", column: 0, text: word }), `p${start.unit.id}`);
    const queue = [start.unit.id];
    for (const unit of queue) {
      const depth = depths.get(unit) + 1;
      if (depth > deepest) continue;
      for (const [other, bridges] of pairs.get(unit) || []) {
        if (depths.has(other) || !ranks.has(other)) continue;
        reach(other, depth);
        queue.push(other);
        for (const bridge of bridges.slice(0, 2)) {
          const name = node(`b${depth} ${bridge.text}`, { kind: "bridge", column: 2 * depth, text: bridge.text, tip: `in ${count(bridge.units)} passages` });
          link(`p${unit}`, name);
          link(name, `p${other}`);
        }
      }
    }
  }
  const linked = new Set([...links.values()].flat());
  for (const key of [...nodes.keys()]) if (!linked.has(key)) nodes.delete(key);
  return { nodes, links: [...links.values()] };
}

/** The first sentence of a text that contains a name, in any case; empty if there is none. */
function sentenceWith(text, name) {
  const wanted = name.toLowerCase();
  const sentences = text.match(/[^.!?\n]+[.!?]*(?:\s|$)|[^\n]+/gu) || [];
  return (sentences.find((one) => one.toLowerCase().includes(wanted)) || "").trim();
}

/** Show which sentences of the passages at both ends of a link have its name, here and in the cards below. */
function lightUp(context, key, drawing) {
  document.querySelectorAll("#columns .lit").forEach((one) => one.replaceWith(...one.childNodes));
  drawing.querySelectorAll(".lit").forEach((one) => one.classList.remove("lit"));
  at("path-note").textContent = "";
  if (!key) return;
  const name = key.own.text;
  const linked = drawing.querySelectorAll(".link");
  const ends = new Set();
  linked.forEach((line) => {
    if (line.dataset.from !== key.id && line.dataset.to !== key.id) return;
    line.classList.add("lit");
    ends.add(line.dataset.from === key.id ? line.dataset.to : line.dataset.from);
  });
  const lines = [];
  for (const passage of context.passages) {
    if (!ends.has(`p${passage.unit.id}`)) continue;
    const box = at(`p0-${passage.rank}`).querySelector(".text");
    const sentence = sentenceWith(box.textContent, name);
    if (!sentence) continue;
    lines.push(`[${passage.rank}] ${short(sentence, 300)}`);
    markSentence(box, sentence);
  }
  at("path-note").textContent = lines.join("\n");
}

/** Mark a sentence in an element whose text contains it; marks of terms in it stay. */
function markSentence(box, sentence) {
  const start = box.textContent.indexOf(sentence);
  if (start < 0) return;
  const walk = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  const parts = [];
  for (let seen = 0; walk.nextNode(); seen += walk.currentNode.length) {
    const from = Math.max(start - seen, 0);
    const to = Math.min(start + sentence.length - seen, walk.currentNode.length);
    if (from < to) parts.push([walk.currentNode, from, to]);
  }
  for (const [node, from, to] of parts) {
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to);
    range.surroundContents(made("span", { class: "lit" }));
  }
}

/** Draw the path of a context; null if nothing bridges two passages. */
function drawPath(context) {
  const { nodes, links } = pathOf(context);
  if (![...nodes.values()].some((one) => one.kind === "bridge")) return null;
  const [wide, high, gap] = [148, 34, 30];
  const columns = [];
  for (const [key, own] of nodes) (columns[own.column] = columns[own.column] || []).push(key);
  const used = columns.filter(Boolean);
  const rows = Math.max(...used.map((column) => column.length));
  const [width, height] = [used.length * (wide + gap) - gap + 24, rows * (high + 14) + 20];
  const centre = new Map();
  used.forEach((column, number) => column.forEach((key, row) => {
    const top = (height - column.length * (high + 14)) / 2;
    centre.set(key, [12 + number * (wide + gap), top + row * (high + 14) + 7 + high / 2]);
  }));
  const drawing = made("svg:svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "how the passages were found" });
  for (const [a, b] of links) {
    const [from, to] = [centre.get(a), centre.get(b)];
    const x = from[0] + wide;
    drawing.append(made("svg:path", { class: "link", "data-from": a, "data-to": b, d: `M${x} ${from[1]}C${x + gap / 2} ${from[1]} ${to[0] - gap / 2} ${to[1]} ${to[0]} ${to[1]}` }));
  }
  for (const [key, own] of nodes) {
    const [x, y] = centre.get(key);
    const text = own.kind === "passage" && own.rank ? `[${own.rank}] ${own.text}` : own.text;
    const go = () => {
      if (own.rank) goToPassage(own.rank); else visit(addressOf("graph", { graph: "walk", around: own.text.toLowerCase() }));
    };
    const group = made("svg:g", { class: own.kind, tabindex: "0", ...(own.kind === "term" ? { role: "img", "aria-label": `term ${text}` } : { role: "link", on: go }) },
      made("svg:title", {}, own.tip ? `${text} (${own.tip})` : text),
      made("svg:rect", { class: "shape", x, y: y - high / 2, width: wide, height: high, rx: own.kind === "passage" ? 6 : 17 }),
      made("svg:text", { x: x + wide / 2, y: y + 5, "text-anchor": "middle" }, short(text, 19)));
    group.addEventListener("keydown", (event) => { if (event.key === "Enter" && own.kind !== "term") go(); });
    if (own.kind !== "passage") {
      for (const name of ["pointerenter", "focus"]) group.addEventListener(name, () => lightUp(context, { id: key, own }, drawing));
      for (const name of ["pointerleave", "blur"]) group.addEventListener(name, () => lightUp(context, null, drawing));
    }
    drawing.append(group);
  }
  drawing.querySelectorAll(".link").forEach((line) => {
    const key = [line.dataset.from, line.dataset.to].find((end) => nodes.get(end).kind !== "passage");
    line.addEventListener("pointerenter", () => lightUp(context, { id: key, own: nodes.get(key) }, drawing));
    line.addEventListener("pointerleave", () => lightUp(context, null, drawing));
  });
  return drawing;
}

function showPath(contexts) {
  const drawing = contexts.length === 1 ? drawPath(contexts[0]) : null;
  at("path-part").hidden = !drawing;
  at("path").replaceChildren(...(drawing ? [drawing] : []));
  at("explore-question").hidden = !(chosen().graphs || []).length;
  at("explore-question").onclick = () => visit(addressOf("graph", { graph: chosen().graphs[0], question: contexts[0].question }));
}
