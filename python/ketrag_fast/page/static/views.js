"use strict";
// The views of the page: which one is shown, the graph, the documents, the index, and the path of a question.
const VIEWS = ["ask", "themes", "graph", "documents", "index"];
const indexQuery = () => `index=${encodeURIComponent(chosen().name)}`;
const loaded = {};
let panel = null;

/** Show the view that the address names, and load it when it is first seen. */
function showView() {
  const [named, query = ""] = location.hash.slice(1).split("?");
  const name = VIEWS.includes(named) ? named : "ask";
  document.body.classList.toggle("wide", name === "graph");
  for (const view of VIEWS) {
    at(`view-${view}`).hidden = view !== name;
    const link = at(`to-${view}`);
    if (view === name) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (!indexes.length) return;
  const key = viewKey(query);
  if (loaded[name] === key || (name === "graph" && !query && loaded.graph && loaded.graph.startsWith(viewKey("")))) return;
  loaded[name] = key;
  if (name === "graph") showGraph(requestOf(query));
  if (name === "themes") showThemes(query);
  if (name === "documents") {
    const asked = new URLSearchParams(query);
    showDocuments(0, asked);
    if (asked.get("unit")) openReader({ unit: { id: Number(asked.get("unit")) } }, Number(asked.get("generation")));
  }
  if (name === "index") showStatistics();
}

const viewKey = (query) => `${chosen().name} ${chosen().generation} ${query}`;

/** The request of an address such as #graph?graph=walk&around=Fram. */
function requestOf(query) {
  const asked = new URLSearchParams(query);
  const request = {};
  if (asked.get("graph")) request.graph = asked.get("graph");
  if (asked.get("question")) request.question = asked.get("question");
  if (asked.get("to")) request.to = asked.get("to");
  if (asked.getAll("around").length) request.around = asked.getAll("around");
  return request;
}

function graphPanel() {
  panel = panel || new GraphPanel(at("graph-root"), {
    questions: true,
    async load(request) {
      try { return await this.picture(request); } catch (error) {
        if (error.code !== "generation_replaced" || !panel.view) throw error;
        // The index has changed: numbers of nodes now mean others, names do not.
        const { id, title } = panel.view.nodes;
        await readIndexes();
        loaded.graph = viewKey("");
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
      const { generation } = panel.view;
      const old = served ? `&generation=${generation}` : "";
      const passage = async (own) => {
        const { passages } = data(await (await call(`/v1/passages/${own}?before=0&after=0&${indexQuery()}${old}`)).text());
        const [one] = passages;
        const read = { unit: { id: own }, title: one.title || one.document, document: one.document };
        return { title: placeOf(one), text: rendered(one.text, [], one.document).textContent, open: () => openReader(read, generation) };
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

function showGraph(request = {}) {
  const own = graphPanel();
  const graphs = chosen().graphs || [];
  own.setGraphs(graphs, graphs.includes(request.graph) ? request.graph : undefined);
  at("graph-filter").closest("details").hidden = !served;
  if (!graphs.length) {
    at("graph-root").replaceChildren(made("p", { class: "about" }, "This index has no graph. Add one with: ketrag index --modes auto"));
    return;
  }
  own.go(request);
}

/** Open the graph view around a name or a question. */
function explore(request) {
  loaded.graph = viewKey("");
  location.hash = "graph";
  showView();
  showGraph(request);
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
    at("index-view").replaceChildren(
      running, named("Index", ["setting", "value"], lines(about)), named("Health", ["what", "state"], health),
      ...(missing.length ? [named("Graphs to add", ["graph", "command"], missing)] : []), table("Counts", ["what", "number"], lines(found.counts)),
      table("Edges", ["graph", "number"], lines(found.edges)), table("Stages", ["stage", "size", "time"], stages),
      ...(found.failures.length ? [named("Documents that failed", ["document", "reason"], found.failures.map((one) => [one.document || one.source || "", one.reason || one.message || JSON.stringify(one)]))] : []),
      ...(history.builds.length ? [builds] : []));
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
at("containing-form").addEventListener("submit", (event) => { event.preventDefault(); showDocuments(0); });
at("containing").addEventListener("input", () => showDocuments(0));
at("reader").addEventListener("close", () => { // the address of a passage is that of the list again
  if (!location.hash.startsWith("#documents?unit=")) return;
  history.replaceState(null, "", "#documents");
  loaded.documents = viewKey("");
});
at("graph-filter").addEventListener("change", () => panel && panel.go(panel.request || {}));
for (const place of ["ask", "graph", "themes"]) at(`${place}-filter`).closest("details").addEventListener("toggle", () => showFilter(place));
at("add-files").addEventListener("change", (event) => addFiles(event.target.files));
at("view-documents").addEventListener("dragover", (event) => { if (writable) event.preventDefault(); });
at("view-documents").addEventListener("drop", (event) => { if (writable) { event.preventDefault(); addFiles(event.dataTransfer.files); } });
begin();
