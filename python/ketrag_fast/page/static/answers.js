"use strict";
// The view Ask: a question and those before it, its answer or quotes, and its passages.
let running = null;
/** Replies by address and generation, so that Back shows them again without asking a model. */
const replies = new Map();
const MOST_REPLIES = 30;
/** Questions that a follow-up question carries along: the service reads the last few only. */
const MOST_TURNS = 10;
/** What the last reply hands to a follow-up question. */
let turn = null;

function status(text, bad = false) {
  at("status").textContent = text;
  at("status").className = bad ? "bad" : "";
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
  if (question.length < 2 || !mode || chosenModes().length) return;
  pause = setTimeout(async () => {
    try {
      const literal = !MARKS.test(question); // the last word may be half a word, for which no similar one is sought
      const context = data(await (await call("/v1/retrieve", { ...requestFor(question), mode, literal })).text());
      if (own !== typed) return;
      clearAnswer();
      showColumns([context]);
      status(`Keyword matches. Press Enter for ${index.answers ? "an answer" : served ? "quotes and the full ranking" : "the full ranking"}.`);
    } catch { /* Enter tells why */ }
  }, PAUSE);
}

/** Drop the reply to what was typed. */
function forget() {
  clearTimeout(pause);
  typed += 1;
}

const chosenModes = () => [...at("modes").querySelectorAll("input:checked")].map((box) => box.value);

/** The parameters of the address for a question, after those that it continues. */
function askParameters(questions) {
  const budget = Number(at("budget").value);
  return { q: questions, mode: at("mode").value, compare: chosenModes(), filter: at("ask-filter").value.trim(), budget: budget === BUDGET ? "" : budget };
}

const BUDGET = 2000;

function requestFor(question) {
  const filter = at("ask-filter").value.trim();
  return { question, index: chosen().name, budget: Number(at("budget").value) || BUDGET, explain: true, ...(filter ? { filter } : {}) };
}

/** Ask a new question, or ask again. */
function askAnew(question, mode = at("mode").value) {
  forget();
  const target = addressOf("ask", { ...askParameters([question]), mode });
  if (indexes.length) replies.delete(viewKey(target)); // else the page has just been opened, and asks when it is ready
  delete loaded.ask;
  visit(target);
  scrollTo(0, 0);
}

/** The state of the page's history with the turns before its question, for the present visit: logging out ends it. */
function withTurns(turns) {
  if (!sessionStorage.getItem("visit")) sessionStorage.setItem("visit", String(Math.random()));
  return { turns, visit: sessionStorage.getItem("visit") };
}

function keptTurns() {
  const { turns, visit: own } = history.state || {};
  return own && own === sessionStorage.getItem("visit") ? turns : undefined;
}

/** Ask a question that continues those of the address. */
function askFurther(question) {
  const earlier = address().query.getAll("q");
  const turns = [...(keptTurns() || earlier.slice(0, -1).map((text) => ({ question: text }))), turn || { question: earlier[earlier.length - 1] }];
  const parameters = askParameters([...earlier, question].slice(-MOST_TURNS - 1));
  visit(addressOf("ask", parameters), { state: withTurns(turns.slice(-MOST_TURNS)) });
  scrollTo(0, 0);
}

function clearAnswer() {
  for (const part of ["answer-part", "passages-part", "path-part", "thread", "taken", "follow", "anew"]) at(part).hidden = true;
}

/** Show what the address asks for: nothing yet, or the reply to its last question. */
function showAsk(query) {
  const questions = query.getAll("q").slice(-MOST_TURNS - 1); // a link may have any number
  const question = questions[questions.length - 1] || "";
  if (questions.length !== 1) at("question").value = "";
  else if (at("question").value.trim() !== question) at("question").value = question;
  for (const [id, name] of [["ask-filter", "filter"], ["mode", "mode"]]) at(id).value = query.get(name) || "";
  at("budget").value = query.get("budget") || BUDGET;
  const compared = query.getAll("compare");
  for (const box of at("modes").querySelectorAll("input")) box.checked = compared.includes(box.value);
  forget();
  if (running) running.abort();
  clearAnswer();
  status("");
  at("start").hidden = Boolean(question);
  if (question) answerQuestion(questions);
}

/** The questions before the last one, each with a link to its reply and what was answered. */
function showThread(questions, turns) {
  const earlier = questions.slice(0, -1);
  at("thread").hidden = !earlier.length;
  at("thread").replaceChildren(...earlier.map((text, place) => {
    const target = addressOf("ask", askParameters(questions.slice(0, place + 1)));
    const link = made("a", { href: target, dir: "auto", on: (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab
      event.preventDefault();
      visit(target, { state: withTurns(turns.slice(0, place)) });
    } }, text);
    const said = (turns[place] || {}).answer;
    return made("li", {}, link, ...(said ? [made("p", { class: "about", dir: "auto" }, short(said.replace(/\s+/g, " "), 160))] : []));
  }), ...(earlier.length ? [made("li", { "aria-current": "true" }, made("h2", { dir: "auto" }, questions[questions.length - 1]))] : []));
}

/** Say what a question took from those before it, and offer to ask it alone. */
function showTaken({ taken = [], read_as: readAs }, question) {
  const words = readAs ? [`Read as: “${readAs}” `] : taken.length ? ["This continues the last question, with: ", made("strong", {}, taken.join(", ")), ". "] : [];
  at("taken").hidden = !words.length;
  at("taken").replaceChildren(...words, made("button", { type: "button", class: "small", on: () => askAnew(question) }, "Ask it alone"));
}

async function* replyTo(questions, signal) {
  const common = requestFor(questions[questions.length - 1]);
  const mode = at("mode").value;
  const modes = mode === "survey" ? [] : chosenModes();
  const one = async (more) => data(await (await call("/v1/retrieve", { ...common, ...more }, signal)).text());
  if (modes.length) { yield ["contexts", await Promise.all(modes.map((own) => one({ mode: own })))]; return; }
  if (mode) common.mode = mode;
  if (!served) { yield ["contexts", [await one({})]]; return; }
  const turns = await turnsBefore(questions, signal);
  if (turns.length) common.history = turns;
  yield* events(await call("/v1/ask", { ...common, stream: true }, signal));
}

/** The turns before a question. A shared link has questions only: without a model they are asked again. */
async function turnsBefore(questions, signal) {
  const earlier = questions.slice(0, -1);
  const kept = keptTurns();
  if (kept && kept.length === earlier.length) return kept;
  const turns = [];
  for (const question of earlier) {
    if (chosen().answers) { turns.push({ question }); continue; }
    const own = data(await (await call("/v1/ask", { ...requestFor(question), ...(turns.length ? { history: turns } : {}) }, signal)).text());
    turns.push(own.turn || { question });
  }
  if (!document.body.classList.contains("locked")) history.replaceState({ ...history.state, ...withTurns(turns) }, "");
  return turns;
}

async function answerQuestion(questions) {
  const question = questions[questions.length - 1];
  const own = running = new AbortController();
  const key = viewKey(location.hash);
  const known = replies.get(key);
  const shown = [];
  let text = "";
  turn = null;
  at("stop").hidden = false;
  at("anew").hidden = false;
  showThread(questions, keptTurns() || []);
  status("Searching");
  try {
    for await (const [name, said] of known || replyTo(questions, own.signal)) {
      if (own !== running) return;
      shown.push([name, said]);
      if (name === "contexts") { showColumns(said); status(served ? "" : "Keyword search in this file. The service has more."); }
      if (name === "context") { showColumns([said]); status(chosen().answers ? "Answering" : ""); if (chosen().answers) showAnswer("", true); }
      if (name === "text") { text += said.text; showAnswer(text, true); }
      if (name === "error") throw new Refused(said.message);
      if (name === "answer") showReply(said, text, questions);
    }
    replies.delete(key);
    replies.set(key, shown);
    if (replies.size > MOST_REPLIES) replies.delete(replies.keys().next().value);
  } catch (error) {
    at("answer").className = "";
    if (error.name === "AbortError") { if (own === running) status("Stopped"); } else status(error.message, true);
  } finally {
    if (own === running) { at("stop").hidden = true; running = null; }
  }
}

/** Show a whole reply: the answer of a model, or quotes, and what the question took from those before it. */
function showReply(said, text, questions) {
  const question = questions[questions.length - 1];
  turn = said.turn || null;
  const written = said.reason === null || said.reason === undefined ? said.answer || text : "";
  if (written) showAnswer(written, false);
  showQuotes(written ? [] : said.quotes || [], said.reason);
  at("answer-part").hidden = !written && !(said.quotes || []).length;
  showThread(questions, keptTurns() || []);
  showTaken(said, question);
  at("follow").hidden = !served;
  status((said.warnings || []).map(sentence).join(" "));
}

/** Show sentences of the passages that answer best, each with its document. */
function showQuotes(quotes, reason) {
  at("quotes").replaceChildren();
  if (!quotes.length) return;
  at("answer-title").textContent = "Quotes that answer best";
  at("answer").hidden = true;
  const about = reason === "no_answer" ? "The extractive model finds no answer." : "Quoted from the passages below. No language model is set to write an answer.";
  at("quotes").append(...quotes.map((quote) => made("blockquote", { class: "quote" },
    ...(quote.header ? [made("p", { class: "about", dir: "auto" }, quote.header)] : []),
    quoteText(quote),
    made("p", { class: "place" }, citeButton(quote.number), " ", readerLink(quote, titleAt(quote.number) || quote.document)))),
    made("p", { class: "about" }, about));
}

/** The text of a quote, with the words marked that its passage has of the question. */
function quoteText({ number, text }) {
  const node = made("p", { dir: "auto" }, ...inlines(text.replace(/\s+/g, " ")));
  markWords(node, [...(at(`p0-${number}`)?.querySelectorAll("mark") || [])].map((mark) => mark.textContent));
  return node;
}

/** The title of the passage with a number in the first list. */
const titleAt = (number) => at(`p0-${number}`)?.querySelector("h4 bdi")?.textContent;

const citeButton = (number) => made("button", { type: "button", class: "cite", "aria-label": `passage ${number}`, on: () => goToPassage(number) }, `[${number}]`);

/** Show an answer, whose numbers lead to the passages; `live` while it is being written. */
function showAnswer(text, live) {
  at("answer-part").hidden = false;
  at("answer-title").textContent = "Answer";
  at("answer").hidden = false;
  at("answer").className = live ? "live" : "";
  at("answer").replaceChildren(...text.split(/(\[(?:\d+|\?)\])/).map((part) => {
    if (part === "[?]") return made("abbr", { title: "no passage supports this sentence" }, part);
    const number = /^\[(\d+)\]$/.exec(part);
    return number ? citeButton(number[1]) : part;
  }));
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = at("question").value.trim();
  if (question) askAnew(question);
});
at("follow").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = at("follow-question").value.trim();
  if (!question) return;
  at("follow-question").value = "";
  askFurther(question);
});
at("anew").addEventListener("click", () => { visit(addressOf("ask")); at("question").focus(); });
at("question").addEventListener("input", peek);
at("stop").addEventListener("click", () => running && running.abort());
document.addEventListener("keydown", (event) => {
  const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName);
  const isBelow = document.querySelector("dialog[open]");
  if (event.key === "/" && !isTyping && !isBelow) {
    event.preventDefault();
    if (address().view !== "ask") visit(at("to-ask").getAttribute("href"));
    at("question").focus();
  }
  if (event.key === "Escape" && running && !isBelow) running.abort();
});
