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

// Scripts without spaces between words.
const UNSPACED = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]/;

function highlighted(text, marks) {
  const node = made("p", { class: "text", dir: "auto" });
  const known = [...new Set(marks)].filter(Boolean).sort((a, b) => b.length - a.length);
  if (!known.length) { node.append(text); return node; }
  const escaped = known.map((word) => {
    const plain = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return UNSPACED.test(word) ? plain : `(?<![\\p{L}\\p{M}\\p{N}])${plain}(?![\\p{L}\\p{M}\\p{N}])`;
  });
  const found = new RegExp(escaped.join("|"), "giu");
  let last = 0;
  for (const hit of text.matchAll(found)) {
    node.append(text.slice(last, hit.index), made("mark", {}, hit[0]));
    last = hit.index + hit[0].length;
  }
  node.append(text.slice(last));
  return node;
}

function placeOf(one) {
  const where = one.location || {};
  const number = one.page || where.page;
  const page = number ? ` p. ${number}` : "";
  const heading = [].concat(where.heading || where.symbol || []).join(" › ");
  const more = [heading && `§ ${heading}`, where.slide && `slide ${where.slide}`, where.cell].filter(Boolean);
  return [`${one.document}${page}:${one.start}-${one.end}`, ...more].join(" · ");
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
  const marks = wordsOf(passage);
  const why = (passage.why || []).filter((reason) => reason.sentence).map((reason) => reason.sentence);
  const node = made("article", { id: `p${column}-${passage.rank}`, tabindex: "-1" },
    made("h4", {}, `[${passage.rank}] `, made("bdi", {}, passage.title || passage.document)),
    made("p", { class: "place" }, made("bdi", {}, placeOf(passage)), ` · ${passage.score.toFixed(3)}`
      + (shared > 1 ? ` · in ${shared} lists` : ""), made("span", {}, copiesOf(passage))),
    highlighted(passage.printed || passage.text, marks));
  const metadata = Object.entries(passage.metadata || {});
  if (metadata.length) {
    const list = made("ul", { class: "why" }, ...metadata.map(([name, value]) =>
      made("li", {}, `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)));
    node.append(made("details", { class: "metadata" }, made("summary", {}, "Metadata"), list));
  }
  if (why.length) {
    const list = made("ul", { class: "why" }, ...why.map((line) => made("li", {}, ...emphasised(line))));
    node.append(made("details", {}, made("summary", {}, "Why this passage"), list));
  }
  const read = made("button", { type: "button", on: () => openReader(passage, 1, generation) }, "Show context");
  node.append(made("div", { class: "row" }, read));
  return node;
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
    const head = `${context.mode}: ${context.passages.length} passages, ${context.tokens} of ${context.budget} tokens`;
    const about = made("p", { class: "about" }, [context.reason && `no passages: ${context.reason}`, ...(context.warnings || [])]
      .filter(Boolean).join(" · "));
    const cards = context.passages.map((one) => card(one, column, seen.get(`${one.unit.kind} ${one.unit.id}`), context.generation));
    return made("div", {}, made("h3", {}, head), about, ...cards);
  }));
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

async function openReader(passage, width, generation) {
  try {
    const unit = passage.unit.id;
    const old = served && generation ? `&generation=${generation}` : "";
    const reply = await call(`/v1/passages/${unit}?before=${width}&after=${width}&${indexQuery()}${old}`);
    const { passages } = data(await reply.text());
    at("reader-title").textContent = passage.title || passage.document;
    at("reader-text").replaceChildren(
      made("p", { class: "place" }, `${passage.document}:${passages[0].start}-${passages.at(-1).end}`),
      ...passages.map((one) => {
        const node = highlighted(one.text, wordsOf(passage));
        if (one.unit === unit) node.classList.add("this");
        return node;
      }));
    at("more").hidden = width >= 20 || passages.length < 2 * width;
    at("more").onclick = () => openReader(passage, Math.min(width * 3, 20), generation);
    at("reader-more").replaceChildren();
    if (!at("reader").open) at("reader").showModal();
  } catch (error) {
    if (error.code === "generation_replaced") refresh();
    status(error.message, true);
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

async function ask(question) {
  if (running) running.abort();
  const own = running = new AbortController();
  const index = chosen();
  const common = { question, index: index.name, budget: Number(at("budget").value) || 2000, explain: true };
  const filter = at("ask-filter").value.trim();
  if (filter) common.filter = filter;
  const modes = [...at("modes").querySelectorAll("input:checked")].map((box) => box.value);
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
    if (at("mode").value) common.mode = at("mode").value;
    if (!index.answers) {
      showColumns([data(await (await call("/v1/retrieve", common, own.signal)).text())]);
      status(served ? "Only passages: this service has no language model" : "Passages of this file");
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
        made("p", { class: "place" }, placeOf(span)), highlighted(span.text, [title]))));
  } catch (error) { view.replaceChildren(made("p", { class: "about" }, error.message)); }
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = at("question").value.trim();
  if (question) ask(question);
});
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
