"use strict";
// What the service answers, from the data in this file: keyword search, passages, documents and pictures.
const served = false;
const held = data(at("file-data").textContent);

class Refused extends Error {}

const OVERVIEW = 150;
const [K1, B] = [1.2, 0.75];

const termsOf = (text) => text.toLowerCase().normalize("NFC").match(/[\p{L}\p{N}]+/gu) || [];

let postings = null;

/** The units of each term with how often they have it, and the lengths of all units. */
function postingsOf() {
  if (postings) return postings;
  const found = new Map();
  const lengths = held.units.text.map((text, row) => {
    const title = held.documents[held.units.document[row]].title;
    const terms = termsOf(`${title} ${text}`);
    const counts = new Map();
    for (const term of terms) counts.set(term, (counts.get(term) || 0) + 1);
    for (const [term, times] of counts) {
      if (!found.has(term)) found.set(term, []);
      found.get(term).push(row, times);
    }
    return terms.length;
  });
  postings = { found, lengths, mean: lengths.reduce((sum, own) => sum + own, 0) / Math.max(lengths.length, 1) };
  return postings;
}

/** The rows of units by BM25, the best first, with their scores and the query terms in them. */
function ranked(question) {
  const { found, lengths, mean } = postingsOf();
  const scores = new Map();
  const words = new Map();
  for (const term of new Set(termsOf(question))) {
    const own = found.get(term) || [];
    const idf = Math.log(1 + (lengths.length - own.length / 2 + 0.5) / (own.length / 2 + 0.5));
    if (own.length > lengths.length) continue; // in more than half of the passages
    for (let place = 0; place < own.length; place += 2) {
      const [row, times] = [own[place], own[place + 1]];
      const part = times * (K1 + 1) / (times + K1 * (1 - B + B * lengths[row] / mean));
      scores.set(row, (scores.get(row) || 0) + idf * part);
      if (!words.has(row)) words.set(row, []);
      words.get(row).push(term);
    }
  }
  return [...scores].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([row, score]) => ({ row, score, words: words.get(row) }));
}

function spanOf(row) {
  const { units, documents } = held;
  const document = documents[units.document[row]];
  return { unit: units.unit[row], document: document.document, title: document.title, start: units.start[row], end: units.end[row], page: units.page[row], location: units.location[row], text: units.text[row] };
}

/** A context of the best passages by keywords, or the one that the index gave for a question of this file. */
function contextOf({ question, budget }) {
  const stored = held.contexts.find((one) => one.question.trim().toLowerCase() === question.trim().toLowerCase());
  if (stored) return stored;
  const passages = [];
  let tokens = 0;
  for (const { row, score, words } of ranked(question)) {
    const span = spanOf(row);
    const size = Math.ceil(span.text.length / 4);
    if (tokens + size > budget && passages.length) break;
    tokens += size;
    const { metadata } = held.documents[held.units.document[row]];
    passages.push({ ...span, rank: passages.length + 1, unit: { kind: "unit", id: span.unit }, score, metadata, why: words.map((word) => ({ word })) });
    if (passages.length >= 20) break;
  }
  const warnings = ["keyword search in this file; the index itself has more modes"];
  return { question, mode: "keywords", budget, tokens, passages, reason: passages.length ? null : "no_match", warnings };
}

/** Sentences with a name, from the passages of this file. */
function nameOf(name) {
  const wanted = name.toLowerCase();
  const sources = [];
  for (let row = 0; row < held.units.text.length && sources.length < 10; row += 1) {
    if (held.units.text[row].toLowerCase().includes(wanted)) sources.push(spanOf(row));
  }
  if (!sources.length) throw new Refused(`no passage of this file contains ${short(name, 80)}`);
  return { name, sources };
}

function pictureOf(query) {
  const name = query.get("graph") || held.index.graphs[0];
  const view = held.views[name];
  if (!view) throw new Refused(`this file has no graph ${short(String(name), 80)}`);
  const request = { around: query.getAll("around"), to: query.get("to"), limit: Number(query.get("limit")) };
  const question = query.get("question");
  if (!question) return { ...pictureIn(view, request, OVERVIEW), graphs: held.index.graphs };
  const units = contextOf({ question, budget: 1000 }).passages.map((one) => one.unit.id);
  const asked = question.toLowerCase();
  const seeds = units.map((unit) => view.nodes.unit.indexOf(unit)).filter((node) => node >= 0);
  if (!seeds.length) view.nodes.title.forEach((title, node) => { if (asked.includes(title.toLowerCase())) seeds.push(node); });
  if (!seeds.length) throw new Refused("the picture in this file has no node of the question");
  return { ...partOf(view, seeds.slice(0, 20), request.limit || 60), graphs: held.index.graphs };
}

function documentsOf(query) {
  const text = (query.get("containing") || "").toLowerCase();
  const theme = query.get("theme");
  const own = theme && new Set(held.documents_of_themes[theme] || []);
  const rows = held.documents.filter((one, place) => !own || own.has(place)).filter((one) => !text || one.document.toLowerCase().includes(text) || one.title.toLowerCase().includes(text));
  const sort = query.get("sort") || "";
  const name = sort.replace("-", "");
  const key = (one) => (name === "units" ? one.units : String(one[name]).toLowerCase());
  if (sort) rows.sort((a, b) => (sort === name ? 1 : -1) * ((key(a) > key(b)) - (key(a) < key(b))));
  const first = Number(query.get("first"));
  const preview = (one) => (held.units.text[held.units.unit.indexOf(one.unit)] || "").slice(0, Number(query.get("preview")));
  const shown = rows.slice(first, first + Number(query.get("count"))).map((one) => ({ ...one, preview: preview(one) }));
  return { total: held.documents.length, documents: shown };
}

function passagesOf(unit, query) {
  const row = held.units.unit.indexOf(unit);
  if (row < 0) throw new Refused("this passage is not in this file");
  const own = held.units.document[row];
  const rows = [];
  for (let other = row - Number(query.get("before")); other <= row + Number(query.get("after")); other += 1) {
    if (held.units.document[other] === own) rows.push(spanOf(other));
  }
  return { unit, passages: rows };
}

/** The unit at a character of a document, or the nearest one before it. */
function unitAt(name, start) {
  const { units, documents } = held;
  const rows = units.unit.map((_, row) => row).filter((row) => documents[units.document[row]].document === name);
  if (!rows.length) throw new Refused(`this file has no document ${short(name, 200)}`);
  return units.unit[rows.filter((row) => units.start[row] <= start).pop() ?? rows[0]];
}

function answerOf(path, query, body) {
  if (path === "/v1/indexes") return { indexes: [held.index], writable: false };
  if (path === "/v1/retrieve") return contextOf(body);
  if (path === "/v1/graph-view") return pictureOf(query);
  if (path === "/v1/graph") return { graphs: held.index.graphs, kinds: held.index.kinds, missing: held.missing };
  if (path === "/v1/documents" && !body) return documentsOf(query);
  if (path === "/v1/stats") return held.stats;
  if (path === "/v1/themes" && held.themes) return held.themes;
  if (path === "/v1/fields") return { fields: [] };
  if (path === "/v1/builds") return { running: null, builds: [] };
  if (path === "/v1/passages") return passagesOf(unitAt(query.get("document"), Number(query.get("at"))), query);
  if (path.startsWith("/v1/passages/")) return passagesOf(Number(path.slice(13)), query);
  if (path.startsWith("/v1/graph/")) return nameOf(decodeURIComponent(path.slice(10)));
  throw new Refused("this page has no server");
}

async function call(address, body) {
  const [path, query = ""] = address.split("?");
  const value = answerOf(path, new URLSearchParams(query), body);
  return { async text() { return JSON.stringify(value); }, async json() { return value; } };
}
