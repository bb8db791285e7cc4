"use strict";
// The views of the page: which one is shown, the graph, the documents, the index, and the path of a question.
const VIEWS = ["ask", "graph", "documents", "index"];
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
  if (name === "documents") showDocuments(0);
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
        return { title: placeOf(one), text: one.text, open: () => openReader(read, 1, generation) };
      };
      if (unit !== null) return [await passage(unit)];
      if (inspects === null) return Promise.all(units.map(passage));
      const one = data(await (await call(`/v1/graph/${encodeURIComponent(title.slice(0, 500))}?kind=${encodeURIComponent(inspects)}&${indexQuery()}`)).text());
      const parts = (one.relations || []).slice(0, 8).filter((r) => r.description)
        .map((r) => ({ title: `${r.source} — ${r.target}`, text: r.description }));
      const spans = (one.sources || one.units || []).slice(0, 8).map((span) =>
        ({ title: span.document ? placeOf(span) : "", text: span.text }));
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

async function showStatistics() {
  try {
    const [found, graphs] = await Promise.all([`/v1/stats?${indexQuery()}`, `/v1/graph?${indexQuery()}`]
      .map(async (path) => data(await (await call(path)).text())));
    const missing = Object.entries(graphs.missing);
    const seconds = (value) => `${value.toFixed(2)} s`;
    const bytes = (value) => (value >= 1e6 ? `${(value / 1e6).toFixed(1)} MB` : `${(value / 1e3).toFixed(1)} kB`);
    const table = (title, heads, rows) => made("section", {}, made("h3", {}, title), made("table", {},
      made("thead", {}, made("tr", {}, ...heads.map((head, at) => made("th", { scope: "col", ...(at ? { class: "number" } : {}) }, head)))),
      made("tbody", {}, ...rows.map((row) => made("tr", {}, ...row.map((cell, at) => made("td", at ? { class: "number" } : {}, String(cell))))))));
    const isShown = ([, value]) => value !== null && value !== undefined && value !== 0;
    const lines = (object) => Object.entries(object).filter(isShown).map(([name, value]) => [name.replaceAll("_", " "), typeof value === "number" ? count(value) : value]);
    const stages = Object.entries(found.stages).sort((a, b) => b[1].bytes - a[1].bytes).map(([name, own]) => [name, bytes(own.bytes), seconds(own.seconds)]);
    const about = { generation: found.generation, created: found.created, digest: found.digest, size: found.disk && bytes(found.disk.total), modes: found.modes.join(", "), documents: chosen().documents, "documents that failed": found.failures.length, ...found.backends };
    const named = (title, heads, rows) => {
      const made = table(title, heads, rows);
      made.classList.add("named");
      return made;
    };
    at("index-view").replaceChildren(
      named("Index", ["setting", "value"], lines(about)),
      ...(missing.length ? [named("Graphs to add", ["graph", "command"], missing)] : []), table("Counts", ["what", "number"], lines(found.counts)),
      table("Edges", ["graph", "number"], lines(found.edges)), table("Stages", ["stage", "size", "time"], stages),
      ...(found.failures.length ? [named("Documents that failed", ["document", "reason"], found.failures.map((one) => [one.document || one.source || "", one.reason || one.message || JSON.stringify(one)]))] : []));
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
at("graph-filter").addEventListener("change", () => panel && panel.go(panel.request || {}));
for (const place of ["ask", "graph"]) at(`${place}-filter`).closest("details").addEventListener("toggle", () => showFilter(place));
at("add-files").addEventListener("change", (event) => addFiles(event.target.files));
at("view-documents").addEventListener("dragover", (event) => { if (writable) event.preventDefault(); });
at("view-documents").addEventListener("drop", (event) => { if (writable) { event.preventDefault(); addFiles(event.dataTransfer.files); } });
begin();
