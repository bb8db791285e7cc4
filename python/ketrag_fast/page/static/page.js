"use strict";
// The view Ask: the question, its answer and passages, and names.
let indexes = [];
let running = null;
let writable = false;

function status(text, bad = false) {
  at("status").textContent = text;
  at("status").className = bad ? "bad" : "";
}

function chosen() {
  return indexes.find((one) => one.name === at("index").value) || indexes[0];
}

function showAbout() {
  const { documents, documents_in_all: all, generation } = chosen();
  const of = all > documents ? ` of ${count(all)}` : "";
  const what = documents === 1 && !of ? "document" : "documents";
  at("about").textContent = `${count(documents)}${of} ${what}${served ? `, generation ${generation}` : " in this file"}`;
}

function showIndex() {
  const one = chosen();
  showAbout();
  at("mode").replaceChildren(...(served ? [made("option", { value: "" }, "auto")] : []),
    ...one.modes.map((mode) => made("option", { value: mode }, mode)));
  at("modes").replaceChildren(...one.modes.map((mode) => {
    const box = made("input", { type: "checkbox", value: mode });
    return made("label", {}, box, mode);
  }));
  at("to-themes").hidden = !served && !held.themes;
  at("entity-part").hidden = one.kinds.length === 0;
  at("compare").hidden = one.modes.length < 2;
  showExamples();
}

/** Questions to start with: those of a file, or some from the most linked names. */
async function showExamples() {
  const one = chosen();
  const key = viewKey("");
  at("examples-part").hidden = true;
  let questions = one.examples || [];
  if (!questions.length && one.graphs.length) {
    try {
      const view = data(await (await call(`/v1/graph-view?${indexQuery()}&limit=40`)).text());
      const names = view.nodes.title.filter((title, node) => view.kinds[view.nodes.kind[node]] !== "passage" && title.length > 3 && title.length < 40);
      const proper = (name) => (name === name.toLowerCase() || name === name.toUpperCase()
        ? name.toLowerCase().replace(/(^|[\s-])\p{L}/gu, (letter) => letter.toUpperCase()) : name);
      questions = names.slice(0, 3).map((name) => `What do the documents say about ${proper(name)}?`);
    } catch { return; } // they are a help, no more
  }
  if (key !== viewKey("") || !questions.length) return;
  at("examples").replaceChildren(...questions.slice(0, 8).map((text) => made("li", {}, made("button", { type: "button", on: () => {
    at("question").value = text;
    ask(text);
  } }, short(text, 120)))));
  at("examples-part").hidden = !at("passages-part").hidden;
}

/** Read the list of indexes; true if a generation has changed. */
async function readIndexes() {
  const before = new Map(indexes.map((one) => [one.name, one.generation]));
  const found = data(await (await call("/v1/indexes")).text());
  indexes = found.indexes;
  writable = found.writable;
  return indexes.some((one) => before.has(one.name) && before.get(one.name) !== one.generation);
}

async function begin() {
  try {
    await readIndexes();
  } catch (error) {
    status(error.message, true);
    return;
  }
  at("token-form").hidden = true;
  status("");
  const before = at("index").value;
  at("index").replaceChildren(...indexes.map((one) => made("option", { value: one.name }, one.name)));
  if (indexes.some((one) => one.name === before)) at("index").value = before;
  at("index-label").hidden = indexes.length < 2;
  showIndex();
  showView();
}

// The query terms named in the explanation of a passage, as the passage spells them.
function wordsOf(passage) {
  return (passage.why || []).filter((reason) => reason.word).flatMap((reason) => reason.forms || [reason.word]);
}

/** The document and the position in it, such as notes.md:93 or report.pdf:p12. */
function placeOf(one) {
  const where = one.location || {};
  const page = one.page || where.page || where.slide;
  const position = where.lines ? where.lines[0] : page ? `p${page}` : where.cell || where.time || "";
  return position ? `${one.document}:${position}` : one.document;
}

/** The headings above a passage, or the function that it is in. */
const headingOf = ({ location: where = {} }) => [].concat(where.heading || where.symbol || []).join(" › ").replaceAll("`", "");

/** A button with the place of a passage, which copies its path and position. */
function placeButton(one) {
  const place = placeOf(one);
  const button = made("button", { type: "button", class: "copy", title: "Copy the path", on: async () => {
    const text = await pathOfPlace(one, place);
    try {
      await navigator.clipboard.writeText(text);
      button.dataset.copied = "copied";
      setTimeout(() => delete button.dataset.copied, 1500);
    } catch { status(text); } // the browser does not let the page write: the text can be selected there
  } }, made("bdi", {}, place));
  return button;
}

/** The path of the file that a passage is from, with the position, if the service knows and shows it. */
async function pathOfPlace(one, place) {
  if (!served || place === one.document) return place;
  try {
    const { path } = data(await (await call(`/v1/text?path=${encodeURIComponent(place)}&${indexQuery()}`)).text());
    return path ? path + place.slice(one.document.length) : place;
  } catch { return place; }
}

/** A sentence whose words between asterisks are emphasised. */
function emphasised(sentence) {
  return sentence.split(/\*([^*]+)\*/).map((part, at) => (at % 2 ? made("em", {}, part) : part));
}

/** Where the text of a passage was found too: three documents and the number of the others. */
function copiesOf(passage) {
  const names = [...new Set((passage.also_in || []).map((copy) => copy.document))];
  const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
  return names.length ? ` · also in ${names.slice(0, 3).join(", ")}${more}` : "";
}

function card(passage, column, shared, generation) {
  const why = (passage.why || []).filter((reason) => reason.sentence).map((reason) => reason.sentence);
  const { relevance, printed, context } = passage;
  const text = printed || [context, passage.text].filter(Boolean).join("\n");
  const heading = headingOf(passage);
  const about = [!(passage.title || "").replaceAll("`", "").startsWith(heading) && heading, shared > 1 && `in ${shared} lists`].filter(Boolean).map((own) => ` · ${own}`).join("");
  const node = made("article", { id: `p${column}-${passage.rank}`, tabindex: "-1" },
    made("header", {}, made("h4", {}, `[${passage.rank}] `, documentLink(passage, generation)),
      ...(relevance === undefined || themeOf(passage) ? [] : [made("span", { class: "relevance", title: "how likely the passage is relevant, from 0 to 1" }, relevance.toFixed(2))])),
    made("p", { class: "place" }, placeButton(passage), about + copiesOf(passage)),
    rendered(text, wordsOf(passage), passage.document));
  const more = made("div", { class: "row more" });
  const list = (title, rows, name) => rows.length && more.append(made("details", { class: name },
    made("summary", {}, title), made("ul", { class: "why" }, ...rows.map((row) => made("li", {}, ...[].concat(row))))));
  list("Why this passage", why.map(emphasised), "reasons");
  list("Metadata", Object.entries(passage.metadata || {}).map(([name, value]) =>
    `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`), "metadata");
  if (more.childNodes.length) node.append(more);
  return node;
}

/** A link that opens a document at a passage. */
function documentLink(passage, generation) {
  const { unit, title, document } = passage;
  const address = `#documents?unit=${unit.id}&generation=${generation || 0}`;
  return made("a", { href: address, on: (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab
    event.preventDefault();
    openReader(passage, generation);
  } }, made("bdi", {}, (title || document).replaceAll("`", "")));
}

const FOLD = 8;

/** Fold the text of a card to a few lines around its first marked word, if it has more. */
function fold(node) {
  const box = node.querySelector(".text");
  const line = parseFloat(getComputedStyle(box).lineHeight);
  if (!box.offsetParent || box.scrollHeight <= (FOLD + 1.5) * line) return;
  const [first] = box.getElementsByTagName("mark");
  const top = first ? first.getBoundingClientRect().top - box.getBoundingClientRect().top : 0;
  box.classList.add("folded");
  if (top > (FOLD - 1) * line) { box.scrollTop = top - 2 * line; box.classList.add("within"); }
  const button = made("button", { type: "button", class: "unfold", "aria-expanded": "false", on: () => {
    const folded = box.classList.toggle("folded");
    box.classList.remove("within");
    box.scrollTop = 0;
    button.setAttribute("aria-expanded", String(!folded));
    button.textContent = folded ? "Show all" : "Show less";
  } }, "Show all");
  box.after(button);
}

/** The theme that a passage of a survey is under. */
const themeOf = (passage) => ((passage.why || []).find((reason) => reason.theme) || {}).theme;

/** Offer a survey for a question that may be about the whole. */
function suggestion(context) {
  if (context.suggested_mode !== "survey") return [];
  return [made("p", { class: "row about" }, "This may be a question about the whole.",
    made("button", { type: "button", class: "small", on: () => askAboutTheWhole(context.question) }, "Answer from many documents, by theme"))];
}

function showColumns(contexts) {
  const seen = new Map();
  for (const context of contexts) {
    for (const one of context.passages) {
      const key = `${one.unit.kind} ${one.unit.id}`;
      seen.set(key, (seen.get(key) || 0) + 1);
    }
  }
  at("passages-part").hidden = false;
  at("columns").replaceChildren(...contexts.map((context, column) => {
    const found = count(context.passages.length);
    const head = `${context.mode}: ${found} ${context.passages.length === 1 ? "passage" : "passages"}, ${count(context.tokens)} of ${count(context.budget)} tokens`;
    const lacking = (context.unknown || []).length ? `no document has ${context.unknown.slice(0, 10).map((word) => `"${word}"`).join(", ")}` : "";
    const about = [context.reason && `no passages: ${context.reason}`, lacking, ...(context.notes || []), ...(context.warnings || [])].filter(Boolean).join(" · ");
    const cards = context.passages.flatMap((one, place) => {
      const theme = themeOf(one);
      const heading = theme && theme !== themeOf(context.passages[place - 1] || {}) ? [made("h3", { class: "theme-of", dir: "auto" }, theme)] : [];
      return [...heading, card(one, column, seen.get(`${one.unit.kind} ${one.unit.id}`), context.generation)];
    });
    return made("div", {}, made("h3", {}, head), ...suggestion(context), ...(about ? [made("p", { class: "about" }, about)] : []), ...cards);
  }));
  at("columns").querySelectorAll("article").forEach(fold);
  showPath(contexts);
  at("examples-part").hidden = true;
  if (served && contexts.some((one) => one.generation && one.generation !== chosen().generation)) refresh();
}

/** Show the generation that the service has now, if another tab or program has changed the index. */
async function refresh() {
  try {
    if (!(await readIndexes())) return;
    showAbout();
    showView();
  } catch { /* the next request tells why */ }
}

const AROUND = 6;

/** Open a document at a passage, with what is before and after it. */
async function openReader(passage, generation) {
  const own = passage.unit.id;
  const old = served && generation ? `&generation=${generation}` : "";
  const parts = async (unit, before, after) =>
    data(await (await call(`/v1/passages/${unit}?before=${before}&after=${after}&${indexQuery()}${old}`)).text()).passages;
  const nodes = (rows) => rows.map((one) => {
    const node = rendered(one.text, wordsOf(passage), one.document);
    node.dataset.unit = one.unit;
    if (one.unit === own) node.classList.add("this");
    return node;
  });
  /** Let a button load the passages before or after those shown. */
  const extend = (button, side) => {
    button.onclick = async () => {
      const edge = side === "before" ? at("reader-text").firstChild : at("reader-text").lastChild;
      const rows = await parts(edge.dataset.unit, side === "before" ? 20 : 0, side === "before" ? 0 : 20);
      const fresh = nodes(rows.filter((one) => String(one.unit) !== edge.dataset.unit));
      edge[side](...fresh);
      button.hidden = fresh.length < 20;
      edge.scrollIntoView({ block: side === "before" ? "start" : "end" });
    };
  };
  try {
    const rows = await parts(own, AROUND, AROUND);
    const [found] = rows.filter((one) => one.unit === own);
    at("reader-title").textContent = passage.title || found.title || found.document;
    at("reader-place").replaceChildren(placeButton(found), headingOf(found) && ` · ${headingOf(found)}`);
    at("reader-text").replaceChildren(...nodes(rows));
    at("before").hidden = rows.findIndex((one) => one.unit === own) < AROUND;
    at("after").hidden = rows.length - 1 - rows.indexOf(found) < AROUND;
    extend(at("before"), "before");
    extend(at("after"), "after");
    at("reader-more").replaceChildren();
    if (!at("reader").open) at("reader").showModal();
    at("reader").scrollTop = 0;
    if (rows[0] !== found) at("reader-text").querySelector(".this").scrollIntoView({ block: "center" });
  } catch (error) {
    if (error.code === "generation_replaced") refresh();
    if (at("view-documents").hidden) status(error.message, true); else at("documents-about").textContent = error.message;
  }
}

// A citation in the answer links to its passage in the first column.
function showAnswer(text, live) {
  const box = at("answer");
  box.className = live ? "live" : "";
  const parts = text.split(/(\[(?:\d+|\?)\])/).map((part) => {
    if (part === "[?]") return made("abbr", { title: "no passage supports this sentence" }, part);
    const number = /^\[(\d+)\]$/.exec(part);
    if (!number) return part;
    const go = () => {
      const target = at(`p0-${number[1]}`);
      if (!target) return;
      document.querySelectorAll("article.here").forEach((one) => one.classList.remove("here"));
      target.classList.add("here");
      target.focus();
      target.scrollIntoView({ block: "center" });
    };
    return made("button", { type: "button", class: "cite", "aria-label": `passage ${number[1]}`, on: go }, part);
  });
  box.replaceChildren(...parts);
}

async function* events(reply) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    held += value;
    for (let end = held.indexOf("\n\n"); end >= 0; end = held.indexOf("\n\n")) {
      const lines = held.slice(0, end).split("\n");
      held = held.slice(end + 2);
      const name = (lines.find((line) => line.startsWith("event: ")) || "").slice(7);
      const body = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (body) yield [name, data(body)];
    }
  }
}

const PAUSE = 80;
/** What a query with marks may contain: quotes, a prefix, a field, an exclusion. */
const MARKS = /["“„«*:]|(^|\s)-/;
let typed = 0;
let pause = null;

/** Show keyword matches while somebody types; a reply that is overtaken by a later one is dropped. */
function peek() {
  forget();
  if (running) running.abort();
  const own = typed;
  const index = chosen();
  const mode = ["bm25", "keywords"].find((name) => index && index.modes.includes(name));
  const question = at("question").value.trim();
  if (question.length < 2 || !mode || at("modes").querySelector("input:checked")) return;
  pause = setTimeout(async () => {
    try {
      const literal = !MARKS.test(question); // the last word may be half a word, for which no similar one is sought
      const context = data(await (await call("/v1/retrieve", { ...requestFor(question), mode, literal })).text());
      if (own !== typed) return;
      at("answer-part").hidden = true;
      showColumns([context]);
      status(`Keyword matches · Enter for ${index.answers ? "an answer" : "the full ranking"}`);
    } catch { /* Enter tells why */ }
  }, PAUSE);
}

/** Drop the reply to what was typed. */
function forget() {
  clearTimeout(pause);
  typed += 1;
}

function requestFor(question) {
  const filter = at("ask-filter").value.trim();
  return { question, index: chosen().name, budget: Number(at("budget").value) || 2000, explain: true, ...(filter ? { filter } : {}) };
}

async function ask(question, mode = at("mode").value) {
  forget();
  if (running) running.abort();
  const own = running = new AbortController();
  const index = chosen();
  const common = requestFor(question);
  const modes = mode === "survey" ? [] : [...at("modes").querySelectorAll("input:checked")].map((box) => box.value);
  at("answer-part").hidden = true;
  at("stop").hidden = false;
  status("Searching");
  try {
    if (modes.length) {
      const replies = await Promise.all(modes.map(async (mode) =>
        data(await (await call("/v1/retrieve", { ...common, mode }, own.signal)).text())));
      showColumns(replies);
      status("");
      return;
    }
    if (mode) common.mode = mode;
    if (!index.answers) {
      showColumns([data(await (await call("/v1/retrieve", common, own.signal)).text())]);
      status(served ? "" : "Passages of this file");
      return;
    }
    const reply = await call("/v1/ask", { ...common, stream: true }, own.signal);
    let text = "";
    for await (const [name, said] of events(reply)) {
      if (name === "context") { showColumns([said]); at("answer-part").hidden = false; showAnswer("", true); status("Answering"); }
      if (name === "text") { text += said.text; showAnswer(text, true); }
      if (name === "error") throw new Refused(said.message);
      if (name === "answer") { showAnswer(said.answer || text, false); status((said.warnings || []).join(" · ")); }
    }
  } catch (error) {
    at("answer").className = "";
    if (error.name === "AbortError") { if (own === running) status("Stopped"); } else status(error.message, true);
  } finally {
    if (own === running) { at("stop").hidden = true; running = null; }
  }
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

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = at("question").value.trim();
  if (question) ask(question);
});
at("question").addEventListener("input", peek);
at("stop").addEventListener("click", () => running && running.abort());
at("index").addEventListener("change", () => { showIndex(); showView(); });
window.addEventListener("focus", () => { if (served && indexes.length) refresh(); });
at("entity-form").addEventListener("submit", (event) => { event.preventDefault(); showEntity(at("entity").value.trim()); });
at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", at("token").value.trim());
  at("token").value = "";
  begin();
});
document.addEventListener("keydown", (event) => {
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName);
  if (event.key === "/" && !typing && !at("reader").open) { event.preventDefault(); location.hash = "ask"; showView(); at("question").focus(); }
  if (event.key === "Escape" && running && !at("reader").open) running.abort();
});
