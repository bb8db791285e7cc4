"use strict";
// The view Documents: list, read, add and remove.
const PAGE = 50;

const COLUMNS = { title: "Title", document: "File", units: "Passages" };
let sorting = "";
let listing = 0;
/** The theme and the filter whose documents are listed. */
let listed = { theme: "", filter: "" };

/** The heads of the table: a press sorts by a column, another one the other way round. */
function documentHeads() {
  return Object.entries(COLUMNS).map(([name, title]) => {
    const order = { [name]: "ascending", [`-${name}`]: "descending" }[sorting];
    const next = order === "ascending" ? `-${name}` : name;
    const button = made("button", { type: "button", id: `sort-${name}`, on: async () => {
      sorting = next;
      await showDocuments(0);
      at(`sort-${name}`).focus();
    } }, title);
    return made("th", { scope: "col", ...(order ? { "aria-sort": order } : {}), ...(name === "units" ? { class: "number" } : {}) }, button);
  });
}

/** A row of the table: the title as a link and how the text begins, the file, and what is known about it. */
function documentRow(one) {
  const name = one.document;
  const { generation } = chosen();
  const open = made("a", { href: `#documents?unit=${one.unit}&generation=${generation}`, on: (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab
    event.preventDefault();
    readDocument(one);
  } }, made("bdi", {}, short(one.title || name, 200)));
  const beginning = rendered(one.preview || "", [], name);
  const head = beginning.firstElementChild;
  if (head && head.nodeName === "H5" && head.textContent === one.title) head.remove(); // the title again
  const begin = beginning.textContent.replace(/\s+/g, " ").trim();
  const metadata = Object.entries(one.metadata || {}).map(([key, value]) =>
    `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(" · ");
  return made("tr", {},
    made("td", {}, open, made("p", { class: "preview", dir: "auto" }, begin), ...(metadata ? [made("p", { class: "about" }, short(metadata, 300))] : [])),
    made("td", {}, short(name, 200)),
    made("td", { "data-head": "Passages", class: "number" }, count(one.units)),
    ...(writable ? [made("td", {}, made("button", { type: "button", class: "small", "aria-label": `Remove ${short(name, 200)}`,
      on: (event) => removeLater(name, event.target.closest("tr")) }, "Remove"))] : []));
}

/** List documents, those of a theme if the address names one. */
async function showDocuments(first, asked = null) {
  if (asked) listed = { theme: asked.get("theme") || "", filter: asked.get("filter") || "" };
  const { theme, filter } = listed;
  showThemeOfDocuments(theme);
  const text = at("containing").value.trim();
  const own = listing += 1;
  try {
    const query = new URLSearchParams({ index: chosen().name, first, count: PAGE, containing: text, preview: 300, ...(sorting && { sort: sorting }), ...(theme && { theme }), ...(filter && { filter }) });
    const found = data(await (await call(`/v1/documents?${query}`)).text());
    if (own !== listing) return;
    const rows = found.documents.map(documentRow);
    at("documents-table").replaceChildren(
      made("thead", {}, made("tr", {}, ...documentHeads(), ...(writable ? [made("th", { scope: "col" }, made("span", { class: "unseen" }, "Actions"))] : []))),
      made("tbody", {}, ...rows));
    const shown = rows.length ? `${count(first + 1)} to ${count(first + rows.length)}` : "none";
    const part = [theme && "of this theme", text && `that contain “${text}”`].filter(Boolean).join(" and ");
    at("documents-about").textContent = part ? `${shown} of those ${part}; ${count(found.total)} in all` : `${shown} of ${count(found.total)}`;
    at("earlier").hidden = first === 0;
    at("later").hidden = rows.length < PAGE || (!part && first + rows.length >= found.total);
    at("earlier").onclick = () => showDocuments(Math.max(first - PAGE, 0));
    at("later").onclick = () => showDocuments(first + PAGE);
    at("documents-write").hidden = !writable;
    showFailures();
  } catch (error) {
    at("documents-table").replaceChildren();
    at("documents-about").textContent = error.message;
  }
}

async function readDocument(one) {
  const unit = { unit: { id: one.unit }, title: one.title, document: one.document };
  const { graphs, generation } = chosen();
  if (!one.units) return;
  await openReader(unit, generation);
  const parts = [];
  const [graph] = ["walk", "keyword", "knn"].filter((name) => graphs.includes(name));
  for (const [name, title] of [[graph, "Names in it"], ["citations", "Citations"]]) {
    if (!name || !graphs.includes(name)) continue;
    try {
      const query = new URLSearchParams({ index: chosen().name, graph: name, around: one.title || unit.document, limit: 60 });
      const view = data(await (await call(`/v1/graph-view?${query}`)).text());
      const own = new Set(view.nodes.seed);
      const { source, target } = view.edges;
      const others = new Set();
      source.forEach((a, edge) => { if (own.has(a)) others.add(target[edge]); if (own.has(target[edge])) others.add(a); });
      const texts = [...others].filter((node) => !own.has(node)).map((node) => view.nodes.title[node]).slice(0, 24);
      if (texts.length) {
        parts.push(made("h3", {}, title), made("ul", { class: "names" }, ...texts.map((text) => made("li", {}, made("button", { type: "button", on: () => {
          at("reader").close();
          explore({ graph: name, around: [text] });
        } }, short(text, 60))))));
      }
    } catch { /* a document without names has no node */ }
  }
  at("reader-more").replaceChildren(...parts);
}

/** The documents that could not be read, with the reason. */
async function showFailures() {
  try {
    const { failures = [] } = data(await (await call(`/v1/stats?${indexQuery()}`)).text());
    at("documents-failed").hidden = !failures.length;
    at("documents-failed").replaceChildren(made("summary", {}, `${count(failures.length)} could not be read`),
      made("ul", {}, ...failures.slice(0, 200).map((one) => made("li", {}, `${short(one.document || one.source || "", 200)}: ${one.reason || one.message || JSON.stringify(one)}`))));
  } catch { at("documents-failed").hidden = true; }
}

async function changeDocuments(body) {
  const begun = Date.now();
  const what = body.documents ? `Adding ${count(body.documents.length)} documents` : "Removing a document";
  let ended = false;
  const tell = async () => {
    const clock = `${what}: ${Math.round((Date.now() - begun) / 1000)} s`;
    let step = "";
    try {
      const { running } = data(await (await call(`/v1/builds?count=0&${indexQuery()}`)).text());
      if (running) step = ` · ${progressText(running)}`;
    } catch { /* the request itself tells why */ }
    if (!ended) at("documents-status").textContent = clock + step;
  };
  at("documents-status").textContent = what;
  const clock = setInterval(tell, 1000);
  try {
    await call("/v1/documents", { index: chosen().name, ...body });
    ended = true;
    at("documents-status").textContent = `${what}: done`;
    await begin();
    showDocuments(0);
  } catch (error) { ended = true; at("documents-status").textContent = error.message; } finally { clearInterval(clock); }
}

const UNDO_MS = 6000;
/** The documents that will be removed unless somebody presses Undo, each with its timer. */
const removals = new Map();

/** Hide a row, offer to undo, and remove the document when the time is over or the page is closed. */
function removeLater(name, row) {
  row.hidden = true;
  const undo = made("button", { type: "button", class: "small", on: () => {
    clearTimeout(removals.get(name));
    removals.delete(name);
    row.hidden = false;
    at("documents-status").textContent = `${short(name, 200)} stays`;
  } }, "Undo");
  at("documents-status").replaceChildren(`${short(name, 200)} is removed `, undo);
  removals.set(name, setTimeout(() => { removals.delete(name); changeDocuments({ remove: [name] }); }, UNDO_MS));
}

window.addEventListener("pagehide", () => {
  const names = [...removals.keys()];
  for (const timer of removals.values()) clearTimeout(timer);
  removals.clear();
  if (names.length) call("/v1/documents", { index: chosen().name, remove: names }).catch(() => {});
});

const UPLOADED = {
  read: (reply) => [count(reply.documents.length) + (reply.documents.length === 1 ? " document" : " documents"), reply.pages && `${count(reply.pages)} pages`].filter(Boolean).join(", "),
  refused: (reply) => `not indexed: ${reply.warnings[0] || "no text was found in it"}`,
  exists: (reply) => `not indexed: ${short(reply.existing[0], 100)} is already in the index`,
};

/** Send one file, and show in its row what was read, or why not. */
async function uploadFile(file, row, replace) {
  const [state, about] = row.lastElementChild.children;
  state.textContent = "reading";
  about.replaceChildren();
  try {
    const query = new URLSearchParams({ name: file.name, index: chosen().name, ...(replace && { replace: "yes" }) });
    const reply = data(await (await sendFile(`/v1/uploads?${query}`, file)).text());
    row.dataset.state = reply.state;
    state.textContent = UPLOADED[reply.state](reply);
    const further = reply.state === "refused" ? reply.warnings.slice(1) : reply.warnings;
    about.replaceChildren(...further.slice(0, 5).map((text) => made("p", { class: "about" }, short(text, 300))));
    if (reply.state === "exists") {
      about.append(made("button", { type: "button", class: "small", on: async () => {
        await uploadFile(file, row, true);
        await begin();
        showDocuments(0);
      } }, "Replace"));
    }
  } catch (error) {
    row.dataset.state = "refused";
    state.textContent = `not indexed: ${error.message}`;
  }
}

/** Index files one after the other, each with a row that tells how far it is. */
async function addFiles(files) {
  const rows = [...files].map((file) => [file, made("tr", { "data-state": "waiting" }, made("td", {}, short(file.name, 200)),
    made("td", {}, made("span", { role: "status" }, "waiting"), made("div", {})))]);
  if (!rows.length) return;
  at("uploads").replaceChildren(made("tbody", {}, ...rows.map(([, row]) => row)));
  at("uploads").hidden = false;
  for (const [file, row] of rows) await uploadFile(file, row, false);
  await begin();
  showDocuments(0);
}
