"use strict";
// The view Documents: the list of documents. Adding and removing them is in uploads.js.
const PAGE = 50;
const COLUMNS = { title: "Title", document: "File", units: "Passages" };

/** What the address of this view asks for, with some of it changed. */
const documentsAddress = (changes) => addressOf("documents", { ...parametersOf(address().query), ...changes });

/** The heads of the table: a press sorts by a column, another one the other way round. */
function documentHeads(sorting) {
  return Object.entries(COLUMNS).map(([name, title]) => {
    const order = { [name]: "ascending", [`-${name}`]: "descending" }[sorting];
    const next = order === "ascending" ? `-${name}` : name;
    const button = made("button", { type: "button", id: `sort-${name}`, on: () => { pressed = `sort-${name}`; visit(documentsAddress({ sort: next, first: "" })); } }, title);
    return made("th", { scope: "col", ...(order ? { "aria-sort": order } : {}), ...(name === "units" ? { class: "number" } : {}) }, button);
  });
}

/** A row of the table: the title as a link and how the text begins, the file, and what is known about it. */
function documentRow(one) {
  const name = one.document;
  const open = readerLink(one, short(one.title || name, 200));
  const beginning = rendered(one.preview || "", [], name);
  const head = beginning.firstElementChild;
  if (head && head.nodeName === "H5" && head.textContent === one.title) head.remove(); // the title again
  const begin = beginning.textContent.replace(/\s+/g, " ").trim();
  const metadata = Object.entries(one.metadata || {}).map(([key, value]) =>
    `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(" · ");
  return made("tr", {},
    made("td", {}, open, made("p", { class: "preview", dir: "auto" }, begin), ...(metadata ? [made("p", { class: "about" }, short(metadata, 300))] : [])),
    made("td", { class: "file" }, short(name, 200)),
    made("td", { "data-head": "Passages", class: "number" }, count(one.units)),
    ...(abilities.has("remove") ? [made("td", { class: "actions" }, made("button", { type: "button", class: "small", "aria-label": `Remove ${short(name, 200)}`,
      on: (event) => askToRemove(name, event.target.closest("tr")) }, "Remove"))] : []));
}

let listing = 0;
/** The id of the head that was pressed, which keeps the focus when the table is replaced. */
let pressed = "";

/** List the documents that the address asks for: those of a theme, with a text in title or file, sorted, in pages. */
async function showDocuments(asked) {
  const [theme, filter, text, sort] = ["theme", "filter", "containing", "sort"].map((name) => asked.get(name) || "");
  const first = Number(asked.get("first")) || 0;
  showThemeOfDocuments(theme);
  if (at("containing").value.trim() !== text) at("containing").value = text;
  at("documents-write").hidden = !abilities.has("add");
  const own = listing += 1;
  try {
    const given = { theme, filter, sort };
    const query = new URLSearchParams({ index: chosen().name, first, count: PAGE, containing: text, preview: 300,
      ...Object.fromEntries(Object.entries(given).filter(([, value]) => value)) });
    const found = data(await (await call(`/v1/documents?${query}`)).text());
    if (own !== listing) return;
    const rows = found.documents.map(documentRow);
    at("documents-table").hidden = !rows.length;
    at("documents-table").replaceChildren(
      made("thead", {}, made("tr", {}, ...documentHeads(sort), ...(abilities.has("remove") ? [made("th", { scope: "col" }, made("span", { class: "unseen" }, "Actions"))] : []))),
      made("tbody", {}, ...rows));
    if (pressed) at(pressed).focus();
    pressed = "";
    const part = [theme && "of this theme", filter && `with ${filter}`, text && `with “${text}” in title or file`].filter(Boolean).join(" and ");
    at("documents-about").textContent = listedText(first, rows.length, found.total, part);
    at("earlier").hidden = first === 0;
    at("later").hidden = rows.length < PAGE || (!part && first + rows.length >= found.total);
    at("earlier").onclick = () => visit(documentsAddress({ first: Math.max(first - PAGE, 0) || "" }));
    at("later").onclick = () => visit(documentsAddress({ first: first + PAGE }));
    showFailures();
  } catch (error) {
    at("documents-table").replaceChildren();
    at("documents-about").textContent = error.message;
  }
}

/** How many documents are listed, and of how many; `part` tells which ones, such as "of this theme". */
function listedText(first, shown, total, part) {
  if (!total) return `There are no documents yet.${abilities.has("add") ? " Choose files, or drop them here." : ""}`;
  if (!shown) return part ? `No documents ${part}.` : "There are no further documents.";
  const range = first || shown === PAGE ? `${count(first + 1)} to ${count(first + shown)}` : "";
  if (part) return range ? `${range} of the documents ${part}` : `${plural(shown, "document")} ${part}`;
  return `${range && `${range} of `}${plural(total, "document")}`;
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

const narrow = () => visit(documentsAddress({ containing: at("containing").value.trim(), first: "" }), { replace: true });
at("containing-form").addEventListener("submit", (event) => { event.preventDefault(); narrow(); });
at("containing").addEventListener("input", narrow);
