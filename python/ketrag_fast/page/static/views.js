"use strict";
// The views of the page: which one is shown, the graph, the documents, the index, and the path of a question.
const indexQuery = () => `index=${encodeURIComponent(chosen().name)}`;
const loaded = {};
let panel = null;

const SHOW = { ask: showAsk, themes: showThemes, graph: showGraph, documents: showDocuments, index: showStatistics };

/** Show what the address names: the view, and the document above it. A view is loaded when its part of the address is new. */
function showView() {
  const { view: name, query } = address();
  document.body.classList.toggle("wide", name === "graph");
  for (const view of VIEWS) {
    at(`view-${view}`).hidden = view !== name;
    const link = at(`to-${view}`);
    if (view === name) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (!indexes.length) return;
  const index = query.get("index");
  if (index && index !== chosen().name && indexes.some((one) => one.name === index)) { at("index").value = index; showIndex(); }
  const asked = query.getAll("q");
  document.title = [query.get("document") || asked[asked.length - 1] || (name === "ask" ? "" : at(`to-${name}`).textContent), "ketrag"].filter(Boolean).join(" · ");
  showReader(query);
  for (const one of READER) query.delete(one);
  at(`to-${name}`).setAttribute("href", addressOf(name, parametersOf(query))); // a view keeps its state while another one is shown
  const key = viewKey(query.toString());
  if (loaded[name] === key) return;
  loaded[name] = key;
  SHOW[name](query);
}

const viewKey = (query) => `${chosen().name} ${chosen().generation} ${query}`;

/** The request of an address such as #graph?graph=walk&around=Fram. */
function requestOf(query) {
  const request = { around: query.getAll("around"), isFromAddress: true };
  for (const name of ["graph", "question", "to"]) if (query.get(name)) request[name] = query.get(name);
  if (!request.around.length) delete request.around;
  return request;
}

/** Keep the picture that is shown in the address; nodes have their names there, since numbers change. */
function keepPicture({ graph, around = [], to, question, isFromAddress }, view, replace) {
  if (isFromAddress || address().view !== "graph") return;
  const { id, title } = view.nodes;
  const names = around.map((name) => (name.startsWith("#") ? title[id.indexOf(Number(name.slice(1)))] : name)).filter(Boolean);
  const isDefault = !names.length && !question && graph === (chosen().graphs || [])[0];
  const target = addressOf("graph", { graph: isDefault ? "" : graph, around: names, to, question, filter: at("graph-filter").value.trim() });
  if (target === at("to-graph").getAttribute("href")) return;
  loaded.graph = viewKey(target.split("?")[1] || "");
  visit(target, { replace });
}

function graphPanel() {
  panel = panel || new GraphPanel(at("graph-root"), {
    questions: true,
    moved: keepPicture,
    async load(request) {
      try { return await this.picture(request); } catch (error) {
        if (error.code !== "generation_replaced" || !panel.view) throw error;
        // The index has changed: numbers of nodes now mean others, names do not.
        const { id, title } = panel.view.nodes;
        await readIndexes();
        const named = request.around.map((name) => (name.startsWith("#") ? title[id.indexOf(Number(name.slice(1)))] : name)).filter(Boolean);
        return this.picture({ ...request, around: named });
      }
    },
    async picture({ graph, around = [], to, question, limit }) {
      const query = new URLSearchParams({ index: chosen().name });
      if (graph) query.set("graph", graph);
      around.forEach((name) => query.append("around", name));
      if (to) query.set("to", to);
      if (question) query.set("question", question);
      query.set("limit", limit || (around.length || question ? 60 : 150));
      const filter = at("graph-filter").value.trim();
      if (filter) query.set("filter", filter);
      if (around.some((name) => name.startsWith("#")) && panel.view) query.set("generation", panel.view.generation);
      return data(await (await call(`/v1/graph-view?${query}`)).text());
    },
    async read({ title, unit, inspects, units }) {
      const old = served ? `&generation=${panel.view.generation}` : "";
      const passage = async (own) => {
        const { passages } = data(await (await call(`/v1/passages/${own}?before=0&after=0&${indexQuery()}${old}`)).text());
        const [one] = passages;
        return { title: placeOf(one), text: rendered(one.text, [], one.document).textContent, open: () => openReader(one) };
      };
      if (unit !== null) return [await passage(unit)];
      if (inspects === null) return Promise.all(units.map(passage));
      const one = data(await (await call(`/v1/graph/${encodeURIComponent(title.slice(0, 500))}?kind=${encodeURIComponent(inspects)}&${indexQuery()}`)).text());
      const parts = (one.relations || []).slice(0, 8).filter((r) => r.description)
        .map((r) => ({ title: `${r.source} — ${r.target}`, text: r.description }));
      const spans = (one.sources || one.units || []).slice(0, 8).map((span) =>
        ({ title: span.document ? placeOf(span) : "", text: rendered(span.text, [], span.document).textContent }));
      return [...(one.description ? [{ title: "", text: one.description }] : []), ...parts, ...spans];
    },
  });
  return panel;
}

function showGraph(query) {
  const own = graphPanel();
  const graphs = chosen().graphs || [];
  const request = requestOf(query);
  own.setGraphs(graphs, graphs.includes(request.graph) ? request.graph : graphs[0]);
  at("graph-filter").value = query.get("filter") || "";
  at("graph-filter").closest("details").hidden = !served;
  at("graph-root").hidden = !graphs.length;
  at("graph-empty").hidden = Boolean(graphs.length);
  if (graphs.length) own.go(request);
}

/** Progress of a build as text, such as "vectors: 1,200 of 6,119 texts, 4 s left". */
function progressText({ stage, done, total, unit, seconds_left: left }) {
  const amount = total ? `${count(done)} of ${count(total)}` : done ? count(done) : "";
  return [`${stage.replaceAll("_", " ")}${amount ? `: ${amount} ${unit}`.trimEnd() : ""}`, left >= 1 && `${count(Math.round(left))} s left`]
    .filter(Boolean).join(", ");
}

let watching = 0;

/** Show the progress of a build while the view is seen, and the new generation when it has ended. */
async function watchBuild(part) {
  const own = watching += 1;
  let ran = false;
  for (;;) {
    try {
      const { running } = data(await (await call(`/v1/builds?count=0&${indexQuery()}`)).text());
      if (own !== watching || !part.isConnected) return;
      part.hidden = !running;
      if (running) {
        part.replaceChildren(made("h3", {}, "A build is running"), made("p", { role: "status" }, progressText(running)),
          ...(running.total ? [made("progress", { max: running.total, value: running.done, "aria-label": `progress of ${running.stage}` })] : []));
      }
      if (ran && !running) { await refresh(); if (own === watching) showStatistics(); return; }
      ran = Boolean(running);
    } catch { return; } // the next view tells why
    if (at("view-index").hidden || !served) return;
    await new Promise((done) => setTimeout(done, ran ? 500 : 3000));
  }
}

/** The past builds as rows: when, how long, which documents and stages. */
const buildRows = (builds) => builds.map((one) => {
  const changes = [[one.added, "added"], [one.updated, "changed"], [one.removed, "removed"]].filter(([number]) => number)
    .map(([number, what]) => `${count(number)} ${what}`).join(", ");
  const more = [one.settings.length && `settings: ${one.settings.join(", ")}`, one.calls && `${count(one.calls)} calls, ${count(one.tokens_in + one.tokens_out)} tokens`,
    one.failures && `${count(one.failures)} failed`].filter(Boolean);
  return [`${one.started.slice(0, 19).replace("T", " ")} UTC`, one.generation, `${one.seconds.toFixed(1)} s`, count(one.documents),
    [changes, one.ran.length && `ran ${one.ran.join(" ")}`, ...more].filter(Boolean).join(" · ")];
});

/** What the index has, in sentences. */
function summaryOf({ counts, created, disk, failures }) {
  const passages = counts.subchunks || counts.chunks || 0;
  const size = disk ? `, ${count(Math.round(disk.total / 1e5) / 10)} MB on disk` : "";
  const when = created ? ` Last changed ${new Date(created).toLocaleString("en", { dateStyle: "long", timeStyle: "short" })}.` : "";
  return made("section", { class: "summary" }, made("p", {}, `${plural(chosen().documents, "document")} in ${plural(passages, "passage")}${size}.${when}`),
    made("p", {}, failures.length ? `${plural(failures.length, "document")} could not be read: see below.` : "Every document could be read."));
}

async function showStatistics() {
  try {
    const [found, graphs, history] = await Promise.all([`/v1/stats?${indexQuery()}`, `/v1/graph?${indexQuery()}`, `/v1/builds?${indexQuery()}`]
      .map(async (path) => data(await (await call(path)).text())));
    const missing = Object.entries(graphs.missing);
    const seconds = (value) => `${value.toFixed(2)} s`;
    const bytes = (value) => (value >= 1e6 ? `${(value / 1e6).toFixed(1)} MB` : value >= 1e3 ? `${(value / 1e3).toFixed(1)} kB` : `${value} B`);
    const table = (title, heads, rows) => made("section", {}, made("h3", {}, title), made("table", {},
      made("thead", {}, made("tr", {}, ...heads.map((head, at) => made("th", { scope: "col", ...(at ? { class: "number" } : {}) }, head)))),
      made("tbody", {}, ...rows.map((row) => made("tr", {}, ...row.map((cell, at) => made("td", { "data-head": heads[at], ...(at ? { class: "number" } : {}) }, String(cell))))))));
    const isShown = ([, value]) => value !== null && value !== undefined && value !== 0;
    const lines = (object) => Object.entries(object).filter(isShown).map(([name, value]) => [name.replaceAll("_", " "), typeof value === "number" ? count(value) : value]);
    const stages = Object.entries(found.stages).sort((a, b) => b[1].bytes - a[1].bytes).map(([name, own]) => [name, bytes(own.bytes), seconds(own.seconds)]);
    const about = { generation: found.generation, created: found.created, digest: found.digest, size: found.disk && bytes(found.disk.total), modes: found.modes.join(", "), documents: chosen().documents, ...found.backends };
    const extracted = found.extraction || {};
    const health = [["documents and chunks that failed", count(found.failures.length)],
      ...(found.extraction ? [["chunks with extracted entities", count(extracted.read)], ["chunks to extract from", count(extracted.pending)]] : []),
      ...(served ? [["check of every file", "ketrag doctor -i INDEX"]] : [])];
    const named = (title, heads, rows) => {
      const made = table(title, heads, rows);
      made.classList.add("named");
      return made;
    };
    const builds = table("Builds", ["started", "generation", "time", "documents", "what"], buildRows(history.builds));
    builds.classList.add("builds", "stack");
    const running = made("section", { class: "running", hidden: "" });
    const failed = found.failures.length ? [named("Documents that could not be read", ["document", "reason"], found.failures.map((one) => [one.document || one.source || "", one.reason || one.message || JSON.stringify(one)]))] : [];
    const figures = made("details", { class: "figures" }, made("summary", {}, "All figures"), made("div", { class: "cards" },
      named("Index", ["setting", "value"], lines(about)), named("Health", ["what", "state"], health),
      ...(missing.length ? [named("Graphs to add", ["graph", "command"], missing)] : []), table("Counts", ["what", "number"], lines(found.counts)),
      table("Edges", ["graph", "number"], lines(found.edges)), table("Stages", ["stage", "size", "time"], stages)));
    at("index-view").replaceChildren(summaryOf(found), running, ...failed, figures, ...(history.builds.length ? [builds] : []));
    if (served) watchBuild(running);
  } catch (error) { at("index-view").replaceChildren(made("p", { class: "about" }, error.message)); }
}

const SIGNS = { is: "=", "is not": "!=", "at least": ">=", "at most": "<=" };

/** Offer the fields of the documents' metadata for a filter, when it is first opened. */
async function showFilter(place) {
  const row = at(`${place}-builder`);
  if (row.dataset.key === viewKey("")) return;
  row.dataset.key = viewKey("");
  try {
    const { fields } = data(await (await call(`/v1/fields?${indexQuery()}`)).text());
    row.hidden = !fields.length;
    const field = made("select", { "aria-label": "field" }, ...fields.map((name) => made("option", {}, name)));
    const sign = made("select", { "aria-label": "comparison" }, ...Object.keys(SIGNS).map((name) => made("option", {}, name)));
    const value = made("input", { type: "search", "aria-label": "value", maxlength: "200" });
    const add = made("button", { type: "button", on: () => {
      const input = at(`${place}-filter`);
      const text = /^[\w.-]+$/.test(value.value) ? value.value : JSON.stringify(value.value);
      input.value = [input.value.trim(), `${field.value}${SIGNS[sign.value]}${text}`].filter(Boolean).join(" and ");
      input.dispatchEvent(new Event("change"));
    } }, "Add");
    row.replaceChildren(field, sign, value, add);
  } catch { row.hidden = true; }
}

window.addEventListener("hashchange", showView);
at("graph-filter").addEventListener("change", () => panel && panel.go({ ...panel.request, isFromAddress: false }));
for (const place of ["ask", "graph", "themes"]) at(`${place}-filter`).closest("details").addEventListener("toggle", () => showFilter(place));
begin();
