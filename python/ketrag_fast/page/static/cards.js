"use strict";
// Passages as cards, in one list or side by side.
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

function card(passage, column, shared) {
  const why = (passage.why || []).filter((reason) => reason.sentence).map((reason) => reason.sentence);
  const { relevance, printed, context } = passage;
  const text = printed || [context, passage.text].filter(Boolean).join("\n");
  const heading = headingOf(passage);
  const about = [!(passage.title || "").replaceAll("`", "").startsWith(heading) && heading, shared > 1 && `in ${shared} lists`].filter(Boolean).map((own) => ` · ${own}`).join("");
  const node = made("article", { id: `p${column}-${passage.rank}`, tabindex: "-1" },
    made("header", {}, made("h4", {}, `[${passage.rank}] `, readerLink(passage, (passage.title || passage.document).replaceAll("`", ""))),
      ...(relevance === undefined || themeOf(passage) ? [] : [made("span", { class: "relevance", title: "how likely the passage answers the question" }, `relevance ${percent(relevance)}`)])),
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

const FOLD = 8;

/** Fold the text of a card to a few lines around its first marked word, if it has more. */
function fold(node) {
  const box = node.querySelector(".text");
  const line = parseFloat(getComputedStyle(box).lineHeight);
  if (!box.offsetParent || box.nextElementSibling?.classList.contains("unfold") || box.scrollHeight <= (FOLD + 1.5) * line) return;
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


/** Passages after the first three are folded if they are less relevant than 0.05. It trades short lists for passages with
 * the answer that have to be unfolded: over 80 questions each of musique, hotpotqa, xquad-en and lihua-world in benches/data
 * (`walk`, 2,000 tokens), 72 % of the other passages are folded and 5.5 % of those with the answer; 74 and 7.9 % with the first
 * one only, 64 and 3.4 % with the first five, 48 and 1.6 % below 0.02, 82 and 9.1 % below 0.1. */
const FIRST = 3;
const WEAK = 0.05;
const isWeak = (one) => one.relevance !== undefined && one.rank > FIRST && one.relevance < WEAK && !themeOf(one);
const some = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

/** Why a context has no passages, as a sentence that says what to do. */
const REASONS = {
  empty_index: "There are no documents yet.",
  no_match: "Nothing in the documents matches these words. Try other words, or fewer of them.",
  below_min_score: "No passage is relevant enough.",
  nothing_fits_filter: "No document matches the filter. Change it, or remove it, under Options.",
  budget_too_small: "No passage fits into the token budget. Raise it under Options.",
};

/** The number of passages and documents of a context; side by side also the mode. */
function headOf({ mode, passages, reason }, isOne) {
  if (!passages.length) return isOne ? REASONS[reason] || "No passages were found." : `${mode}: no passages`;
  const documents = new Set(passages.map((one) => one.document)).size;
  return `${isOne ? "" : `${mode}: `}${plural(passages.length, "passage")} from ${plural(documents, "document")}`;
}

/** Notes about a context, such as words that no document has. */
function notesOf({ unknown = [], notes = [], warnings = [] }) {
  const lacking = unknown.length ? [`No document has ${unknown.slice(0, 10).map((word) => `“${word}”`).join(", ")}.`] : [];
  const others = notes.filter((text) => !text.toLowerCase().startsWith("continues the conversation")); // #taken says it
  return [...lacking, ...others, ...warnings].map((text) => made("p", { class: "note" }, sentence(text)));
}

/** A text as a sentence: with a capital letter and a full stop. */
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?:]$/.test(text) ? "" : "."}`;

/** The cards of a context; the weaker ones are folded. */
function cardsOf(context, column, seen) {
  const cards = context.passages.map((one, place) => {
    const theme = themeOf(one);
    const heading = theme && theme !== themeOf(context.passages[place - 1] || {}) ? [made("h3", { class: "theme-of", dir: "auto" }, theme)] : [];
    return [...heading, card(one, column, seen.get(`${one.unit.kind} ${one.unit.id}`))];
  });
  const weak = context.passages.flatMap((one, place) => (isWeak(one) ? cards[place] : []));
  const strong = cards.filter((_, place) => !isWeak(context.passages[place])).flat();
  if (!weak.length) return strong;
  const box = made("details", { class: "weaker" }, made("summary", {}, `${plural(weak.length, "weaker passage")}`), ...weak);
  box.addEventListener("toggle", () => box.querySelectorAll("article").forEach(fold));
  return [...strong, box];
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
    const head = headOf(context, contexts.length === 1);
    const about = { class: "count", title: `${context.mode}: ${count(context.tokens)} of ${count(context.budget)} tokens` };
    return made("div", {}, made("h3", about, head), ...suggestion(context), ...notesOf(context), ...cardsOf(context, column, seen));
  }));
  at("columns").querySelectorAll("article").forEach(fold);
  showPath(contexts);
  at("start").hidden = true;
  if (served && contexts.some((one) => one.generation && one.generation !== chosen().generation)) refresh();
}

/** Move the focus to the passage with a number in the first list, unfolded if it is among the weaker ones. */
function goToPassage(number) {
  const target = at(`p0-${number}`);
  if (!target) return;
  const weaker = target.closest(".weaker");
  if (weaker) weaker.open = true;
  document.querySelectorAll("article.here").forEach((one) => one.classList.remove("here"));
  target.classList.add("here");
  target.focus();
  target.scrollIntoView({ block: "center" });
}
