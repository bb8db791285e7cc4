"use strict";
// The start of the page: indexes, what the caller may do, questions to start with, and names.
let indexes = [];
/** What the caller may do besides reading: "add" and "remove" documents. */
let abilities = new Set();

function chosen() {
  return indexes.find((one) => one.name === at("index").value) || indexes[0];
}

function showAbout() {
  const { documents, documents_in_all: all, generation } = chosen();
  at("about").textContent = `${all > documents ? `${count(documents)} of ` : ""}${plural(Math.max(all || 0, documents), "document")}${served ? "" : " in this file"}`;
  if (served) at("about").title = `generation ${generation}`;
}

function showIndex() {
  const one = chosen();
  showAbout();
  at("mode").replaceChildren(made("option", { value: "" }, "automatic"), ...one.modes.map((mode) => made("option", { value: mode }, mode)));
  at("modes").replaceChildren(...one.modes.map((mode) => made("label", {}, made("input", { type: "checkbox", value: mode }), mode)));
  at("to-themes").hidden = !served && !held.themes;
  at("entity-part").hidden = one.kinds.length === 0;
  at("compare").hidden = one.modes.length < 2;
  showStart();
}

/** Questions to start with: those of a file, or some about the most linked names. An empty index says what to do. */
async function showStart() {
  const one = chosen();
  const key = viewKey("");
  at("empty").hidden = Boolean(one.documents);
  at("examples-part").hidden = true;
  if (!one.documents) {
    at("empty").replaceChildren(made("h2", {}, "There are no documents yet"), abilities.has("add")
      ? made("p", {}, made("a", { href: addressOf("documents") }, "Add files"), ": text, Markdown, PDF, Office, mail, web pages and more.")
      : made("p", {}, "The person who runs this service adds some with ", made("code", {}, "ketrag index FOLDER"), ", or starts it with ", made("code", {}, "--allow-write"), " so that files can be added here."));
    return;
  }
  let questions = one.examples || [];
  if (!questions.length && one.graphs.length) {
    try {
      const view = data(await (await call(`/v1/graph-view?${indexQuery()}&limit=40`)).text());
      const names = view.nodes.title.filter((title, node) => view.kinds[view.nodes.kind[node]] !== "passage" && title.length > 3 && title.length < 40 && !/\d/.test(title));
      questions = names.slice(0, 3).map((name) => `What do the documents say about ${properName(name)}?`);
    } catch { return; } // they are a help, no more
  }
  if (key !== viewKey("") || !questions.length) return;
  at("examples").replaceChildren(...questions.slice(0, 8).map((text) => made("li", {}, made("button", { type: "button", on: () => askAnew(text) }, short(text, 120)))));
  at("examples-part").hidden = false;
}

/** Read the list of indexes; true if a generation has changed. */
async function readIndexes() {
  const before = new Map(indexes.map((one) => [one.name, one.generation]));
  const found = data(await (await call("/v1/indexes")).text());
  indexes = found.indexes;
  at("user").textContent = found.user || "";
  abilities = new Set(found.may || (found.writable ? ["add", "remove"] : []));
  return indexes.some((one) => before.has(one.name) && before.get(one.name) !== one.generation);
}

async function begin() {
  try {
    await readIndexes();
  } catch (error) {
    status(error.message, true);
    return;
  }
  status("");
  const before = address().query.get("index") || at("index").value;
  at("index").replaceChildren(...indexes.map((one) => made("option", { value: one.name }, one.name)));
  if (indexes.some((one) => one.name === before)) at("index").value = before;
  at("index-label").hidden = indexes.length < 2;
  showIndex();
  showView();
}

/** Show the generation that the service has now, if another tab or program has changed the index. */
async function refresh() {
  try {
    if (!(await readIndexes())) return;
    showAbout();
    if (!at("start").hidden) showStart();
    if (address().view !== "ask") showView();
  } catch { /* the next request tells why */ }
}

async function showEntity(name) {
  const view = at("entity-view");
  try {
    const index = encodeURIComponent(chosen().name);
    const one = data(await (await call(`/v1/graph/${encodeURIComponent(name)}?index=${index}`)).text());
    const title = one.name || name;
    at("entity").value = title;
    const relations = one.relations || [];
    const others = [...new Set(relations.map((r) => (r.source === title ? r.target : r.source)))];
    const spans = (one.sources || []).slice(0, 30);
    view.replaceChildren(
      made("h3", {}, one.type ? `${title} (${one.type.toLowerCase()})` : title),
      made("p", { class: "text", dir: "auto" }, one.description || ""),
      made("ul", { class: "names", "aria-label": "related to" }, ...others.slice(0, 60).map((other) =>
        made("li", {}, made("button", { type: "button", on: () => showEntity(other) }, other)))),
      ...relations.slice(0, 20).filter((r) => r.description).map((r) => made("article", {},
        made("h4", {}, made("bdi", {}, r.source), " — ", made("bdi", {}, r.target)), made("p", { class: "text", dir: "auto" }, r.description))),
      ...spans.map((span) => made("article", {},
        made("p", { class: "place" }, placeButton(span)), rendered(span.text, [title], span.document))));
  } catch (error) { view.replaceChildren(made("p", { class: "about" }, error.message)); }
}

at("index").addEventListener("change", () => {
  const { view, query } = address();
  for (const name of READER) query.delete(name);
  showIndex();
  visit(addressOf(view, { ...parametersOf(query), index: at("index").value }));
});
window.addEventListener("focus", () => { if (served && indexes.length) refresh(); });
at("entity-form").addEventListener("submit", (event) => { event.preventDefault(); showEntity(at("entity").value.trim()); });
at("skip").addEventListener("click", (event) => { event.preventDefault(); document.querySelector("main").focus(); });
