"use strict";
// The address of the page, #VIEW?NAME=VALUE&..., has the view, the question, the filters and the open document.
const VIEWS = ["ask", "themes", "graph", "documents", "index"];
/** The parameters of a document that is open above a view. */
const READER = ["document", "at"];

/** The view and the parameters of the address. */
function address() {
  const text = location.hash.slice(1);
  const end = text.includes("?") ? text.indexOf("?") : text.length;
  const named = text.slice(0, end);
  return { view: VIEWS.includes(named) ? named : "ask", query: new URLSearchParams(text.slice(end + 1)) };
}

/** An address with parameters, each a text, a number or a list of these; empty ones are left out. */
function addressOf(view, parameters = {}) {
  const query = new URLSearchParams();
  const own = indexes.length > 1 ? { ...parameters, index: parameters.index || chosen().name } : parameters;
  for (const [name, value] of Object.entries(own)) {
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") query.append(name, one);
  }
  const text = query.toString();
  return `#${view}${text ? `?${text}` : ""}`;
}

/** The parameters of the address as an object whose values are lists. */
function parametersOf(query) {
  return Object.fromEntries([...new Set(query.keys())].map((name) => [name, query.getAll(name)]));
}

/** Go to an address, as a link does, or replace that of the page. */
function visit(target, { replace = false, state = null } = {}) {
  if (target !== location.hash || state) history[replace ? "replaceState" : "pushState"](state, "", target);
  showView();
}

/** The address of the view that is shown, with a document open above it. */
function readerAddress(one, view) {
  const now = address();
  return addressOf(view || now.view, { ...(view ? {} : parametersOf(now.query)), document: one.document, at: one.start });
}

/** A link that opens a document above the view; in a new tab it opens above the list of documents. */
function readerLink(one, text) {
  return made("a", { href: readerAddress(one, "documents"), on: (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab
    event.preventDefault();
    openReader(one);
  } }, made("bdi", {}, text));
}
