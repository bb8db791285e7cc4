"use strict";
// The reader: a document, opened at a passage, with what is before and after it.
const AROUND = 6;
const FURTHER = 20;
/** The document and character that the reader shows. */
let reading = "";
/** The terms to mark in the passage that was opened last. */
let marked = [];
/** Whether the address closed the reader, whose event comes later, maybe when the address names a document again. */
let closedByAddress = false;

/** Open a document above the view, at the passage `one`. */
function openReader(one) {
  marked = wordsOf(one);
  visit(readerAddress(one), { state: { ...history.state, opened: true } });
}

/** The passage at a character of a document, and its neighbours. */
async function passagesAt(document, start, before, after) {
  const query = new URLSearchParams({ document, at: Number(start) || 0, before, after, ...parametersOf(new URLSearchParams(indexQuery())) });
  return data(await (await call(`/v1/passages?${query}`)).text());
}

/** Show the document that the address names, or close the reader. */
async function showReader(query) {
  const document = query.get("document") || "";
  const start = query.get("at");
  const key = document && `${viewKey(document)} ${start}`;
  if (key === reading) return;
  reading = key;
  if (!document) {
    closedByAddress = at("reader").open;
    at("reader").close();
    return;
  }
  at("reader-title").textContent = document;
  for (const part of ["place", "text", "more"]) at(`reader-${part}`).replaceChildren();
  at("before").hidden = at("after").hidden = true;
  if (!at("reader").open) at("reader").showModal();
  try {
    await fillReader(document, start, key);
  } catch (error) { if (key === reading) at("reader-place").textContent = error.message; }
}

async function fillReader(document, start, key) {
  const { unit: own, passages: rows } = await passagesAt(document, start, AROUND, AROUND);
  if (key !== reading) return;
  const [found] = rows.filter((one) => one.unit === own);
  const nodes = (shown) => shown.map((one) => {
    const node = rendered(one.text, marked, one.document);
    [node.dataset.unit, node.dataset.start] = [one.unit, one.start];
    if (one.unit === own && start !== null) node.classList.add("this");
    return node;
  });
  /** Let a button show the passages before or after those shown. */
  const extend = (button, side) => {
    button.onclick = async () => {
      const edge = side === "before" ? at("reader-text").firstChild : at("reader-text").lastChild;
      const { unit, passages } = await passagesAt(document, edge.dataset.start, side === "before" ? FURTHER : 0, side === "before" ? 0 : FURTHER);
      const fresh = nodes(passages.filter((one) => one.unit !== unit));
      edge[side](...fresh);
      button.hidden = fresh.length < FURTHER;
      edge.scrollIntoView({ block: side === "before" ? "start" : "end" });
    };
  };
  at("reader-title").textContent = found.title || document;
  at("reader-place").replaceChildren(placeButton(found), headingOf(found) && ` · ${headingOf(found)}`);
  at("reader-text").replaceChildren(...nodes(rows));
  at("before").hidden = rows.indexOf(found) < AROUND;
  at("after").hidden = rows.length - 1 - rows.indexOf(found) < AROUND;
  extend(at("before"), "before");
  extend(at("after"), "after");
  at("reader").scrollTop = 0;
  if (rows[0] !== found) at("reader-text").querySelector(`[data-unit="${own}"]`).scrollIntoView({ block: "center" });
  if (address().view === "documents") showRelated(found.title || document, key);
}

/** Names and documents that a document is linked to in the graphs. */
async function showRelated(title, key) {
  const { graphs } = chosen();
  const parts = [];
  for (const [name, heading] of [[["walk", "keyword", "knn"].find((one) => graphs.includes(one)), "Names in it"], ["citations", "Links"]]) {
    if (!graphs.includes(name)) continue;
    try {
      const query = new URLSearchParams({ index: chosen().name, graph: name, around: title, limit: 60 });
      const view = data(await (await call(`/v1/graph-view?${query}`)).text());
      const own = new Set(view.nodes.seed);
      const { source, target } = view.edges;
      const others = new Set();
      source.forEach((a, edge) => { if (own.has(a)) others.add(target[edge]); if (own.has(target[edge])) others.add(a); });
      const texts = [...others].filter((node) => !own.has(node)).map((node) => view.nodes.title[node]).slice(0, 24);
      if (!texts.length) continue;
      parts.push(made("h3", {}, heading), made("ul", { class: "names" }, ...texts.map((text) => made("li", {}, made("button", { type: "button", on: () => {
        visit(addressOf("graph", { graph: name, around: text }));
      } }, short(name === "citations" ? text : properName(text), 60))))));
    } catch { /* a document without names has no node */ }
  }
  if (key === reading) at("reader-more").replaceChildren(...parts);
}

/** A [[wiki link]]: it opens the document with this title or file name, or lists those that contain it. */
function wikiLink(target, text) {
  const wanted = target.split("#")[0].trim();
  if (!/\p{L}/u.test(wanted)) return text; // a heading of this document, or a matrix
  const all = addressOf("documents", { containing: wanted });
  return made("a", { href: all, on: async (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab
    event.preventDefault();
    const query = new URLSearchParams({ index: chosen().name, containing: wanted.split("/").pop(), first: 0, count: PAGE, preview: 0 });
    const { documents } = data(await (await call(`/v1/documents?${query}`)).text());
    const names = ({ title, document }) => [title, document, document.replace(/\.\w+$/, ""), document.replace(/^.*\//, "").replace(/\.\w+$/, "")];
    const found = documents.find((one) => names(one).some((name) => name.toLowerCase() === wanted.toLowerCase()));
    if (found) openReader(found); else visit(all);
  } }, text);
}

at("reader").addEventListener("close", () => {
  if (closedByAddress) { closedByAddress = false; return; }
  const { view, query } = address();
  if (!query.has("document")) return; // the address is the reason
  if (history.state && history.state.opened) { history.back(); return; }
  for (const name of READER) query.delete(name);
  visit(addressOf(view, parametersOf(query)), { replace: true });
});
