"use strict";
// Text from documents and models is inserted as text, never as markup.
const at = (id) => document.getElementById(id);
const made = (name, about = {}, ...inside) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(about)) {
    if (key === "on") node.addEventListener("click", value);
    else if (key === "class") node.className = value;
    else node.setAttribute(key, value);
  }
  node.append(...inside);
  return node;
};
let indexes = [];
let running = null;
let words = [];

class Refused extends Error {}

// Control characters, invisible characters and bidirectional marks are shown as escapes.
function visible(text) {
  return text.replace(/\r\n/g, "\n")
    .replace(/[\x00-\x08\x0b-\x1f]/g, (one) => String.fromCharCode(0x2400 + one.charCodeAt(0)))
    .replace(/[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]/g,
      (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function data(text) {
  return JSON.parse(text, (_, value) => (typeof value === "string" ? visible(value) : value));
}

async function call(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  const options = body ? { method: "POST", body: JSON.stringify(body), headers, signal } : { headers, signal };
  const reply = await fetch(path, options);
  if (reply.ok) return reply;
  const said = await reply.json().catch(() => ({ message: reply.statusText }));
  if (reply.status === 401) at("token-form").hidden = false;
  const wait = reply.headers.get("Retry-After");
  throw new Refused([said.message, said.hint, wait && `retry in ${wait} s`].filter(Boolean).join(" · "));
}

function status(text, bad = false) {
  at("status").textContent = text;
  at("status").className = bad ? "bad" : "";
}

function chosen() {
  return indexes.find((one) => one.name === at("index").value) || indexes[0];
}

function showIndex() {
  const one = chosen();
  at("about").textContent = `${one.documents.toLocaleString("en")} documents, generation ${one.generation}`;
  at("mode").replaceChildren(made("option", { value: "" }, "auto"),
    ...one.modes.map((mode) => made("option", { value: mode }, mode)));
  at("modes").replaceChildren(...one.modes.map((mode) => {
    const box = made("input", { type: "checkbox", value: mode });
    return made("label", {}, box, mode);
  }));
  at("entity-part").hidden = one.kinds.length === 0;
}

async function begin() {
  try {
    indexes = data(await (await call("/v1/indexes")).text()).indexes;
  } catch (error) {
    status(error.message, true);
    return;
  }
  at("token-form").hidden = true;
  status("");
  at("index").replaceChildren(...indexes.map((one) => made("option", { value: one.name }, one.name)));
  at("index-label").hidden = indexes.length < 2;
  showIndex();
}

// The query terms named in the explanation of a passage.
function wordsOf(passage) {
  return (passage.why || []).filter((reason) => reason.word).map((reason) => reason.word);
}

function highlighted(text, marks) {
  const node = made("p", { class: "text" });
  const known = [...new Set(marks)].filter(Boolean).sort((a, b) => b.length - a.length);
  if (!known.length) { node.append(text); return node; }
  const escaped = known.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const found = new RegExp(`(?<![\\p{L}\\p{N}])(${escaped.join("|")})(?![\\p{L}\\p{N}])`, "giu");
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
  const page = one.page ? ` p. ${one.page}` : "";
  const heading = [].concat(where.heading || where.symbol || []).join(" › ");
  const more = [heading && `§ ${heading}`, where.slide && `slide ${where.slide}`, where.cell].filter(Boolean);
  return [`${one.document}${page}:${one.start}-${one.end}`, ...more].join(" · ");
}

function card(passage, column, shared) {
  const marks = wordsOf(passage);
  const why = (passage.why || []).filter((reason) => reason.sentence).map((reason) => reason.sentence);
  const node = made("article", { id: `p${column}-${passage.rank}`, tabindex: "-1" },
    made("h4", {}, `[${passage.rank}] ${passage.title || passage.document}`),
    made("p", { class: "place" }, `${placeOf(passage)} · ${passage.score.toFixed(3)}`
      + (shared > 1 ? ` · in ${shared} lists` : "")),
    highlighted(passage.printed || passage.text, marks));
  const metadata = Object.entries(passage.metadata || {});
  if (metadata.length) {
    const list = made("ul", { class: "why" }, ...metadata.map(([name, value]) =>
      made("li", {}, `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)));
    node.append(made("details", { class: "metadata" }, made("summary", {}, "Metadata"), list));
  }
  if (why.length) {
    const list = made("ul", { class: "why" }, ...why.map((line) => made("li", {}, line)));
    node.append(made("details", {}, made("summary", {}, "Why this passage"), list));
  }
  const read = made("button", { type: "button", on: () => openReader(passage, 1) }, "Show context");
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
    const cards = context.passages.map((one) => card(one, column, seen.get(`${one.unit.kind} ${one.unit.id}`)));
    return made("div", {}, made("h3", {}, head), about, ...cards);
  }));
}

async function openReader(passage, width) {
  try {
    const index = encodeURIComponent(chosen().name);
    const unit = passage.unit.id;
    const reply = await call(`/v1/passages/${unit}?before=${width}&after=${width}&index=${index}`);
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
    at("more").onclick = () => openReader(passage, Math.min(width * 3, 20));
    if (!at("reader").open) at("reader").showModal();
  } catch (error) { status(error.message, true); }
}

// A citation in the answer links to its passage in the first column.
function showAnswer(text, live) {
  const box = at("answer");
  box.className = live ? "live" : "";
  const parts = text.split(/(\[\d+\])/).map((part) => {
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
      status("Only passages: this service has no language model");
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
      made("p", { class: "text" }, one.description || ""),
      made("ul", { class: "names", "aria-label": "related to" }, ...others.slice(0, 60).map((other) =>
        made("li", {}, made("button", { type: "button", on: () => showEntity(other) }, other)))),
      ...relations.slice(0, 20).filter((r) => r.description).map((r) => made("article", {},
        made("h4", {}, `${r.source} — ${r.target}`), made("p", { class: "text" }, r.description))),
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
at("index").addEventListener("change", showIndex);
at("entity-form").addEventListener("submit", (event) => { event.preventDefault(); showEntity(at("entity").value.trim()); });
at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", at("token").value.trim());
  at("token").value = "";
  begin();
});
document.addEventListener("keydown", (event) => {
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName);
  if (event.key === "/" && !typing && !at("reader").open) { event.preventDefault(); at("question").focus(); }
  if (event.key === "Escape" && running && !at("reader").open) running.abort();
});
begin();
