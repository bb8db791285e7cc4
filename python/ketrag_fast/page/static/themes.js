"use strict";
// The view Themes: what the documents are about, and questions about the whole.

/** The themes that are shown: the reply of the service, and the filter that they are of. */
let themes = { themes: [], filter: "" };

function* everyTheme(list) {
  for (const theme of list) { yield theme; yield* everyTheme(theme.themes); }
}

const themeAddress = (view, id) => addressOf(view, { theme: id, filter: themes.filter });

/** A central sentence with a link that opens its document there. */
function quoteBox(quote) {
  return made("blockquote", { class: "quote" }, made("p", { dir: "auto" }, ...inlines(quote.text.replace(/\s+/g, " "))),
    made("p", { class: "place" }, readerLink({ ...quote, why: [{ word: quote.text }] }, quote.title || quote.document), " · ", placeButton(quote)));
}

/** The share of a theme in each period as bars, and in words. */
function periodsBox(periods) {
  const most = periods.reduce((a, b) => (b.share > a.share ? b : a));
  const [first, last] = [periods[0].period, periods[periods.length - 1].period];
  const words = `${percent(most.share)} of the passages of ${most.period}, the largest share`;
  const [wide, high] = [10, 40];
  const bars = periods.map(({ period, passages, share }, place) => {
    const size = most.share ? Math.max(high * share / most.share, share ? 1 : 0) : 0;
    return made("svg:g", {}, made("svg:title", {}, `${period}: ${plural(passages, "passage")}, ${percent(share)}`),
      made("svg:rect", { class: "room", x: place * wide, y: 0, width: wide, height: high }),
      made("svg:rect", { class: "bar", x: place * wide + 1, y: high - size, width: wide - 2, height: size }));
  });
  const drawing = made("svg:svg", { class: "periods", viewBox: `0 0 ${periods.length * wide} ${high}`, preserveAspectRatio: "none", role: "img", "aria-label": `share from ${first} to ${last}: ${words}` }, ...bars);
  return made("figure", {}, drawing, made("figcaption", { class: "about" }, made("span", {}, first), made("span", {}, words), made("span", {}, last)));
}

/** What a language model wrote about a theme. */
function summaryOfTheme({ summary }) {
  return summary ? [made("h3", { dir: "auto" }, summary.title), made("p", { class: "theme-summary", dir: "auto" }, summary.text)] : [];
}

function documentsOfTheme(theme) {
  const rows = theme.documents.slice(0, 5).map((one) => made("li", {},
    readerLink(one, one.title || one.document), made("span", { class: "about" }, ` ${plural(one.passages, "passage")}`)));
  return [made("h3", {}, "Documents"), made("ul", { class: "theme-documents" }, ...rows),
    made("p", {}, made("a", { href: themeAddress("documents", theme.id) }, `List ${theme.document_count === 1 ? "this document" : `all ${count(theme.document_count)} documents`}`))];
}

/** A theme that unfolds to its quotes, shares over time, documents and narrower themes. */
function themeBox(theme, largest) {
  const bar = made("span", { class: "share" });
  bar.style.inlineSize = `${100 * theme.passages / largest}%`;
  const copies = theme.copies ? ` and ${count(theme.copies)} copies` : "";
  const box = made("details", { class: "theme", id: `theme-${theme.id}` },
    made("summary", {}, made("span", { class: "terms", dir: "auto" }, made("span", { class: "about" }, `${theme.id} `), theme.label || "passages without common terms"),
      made("span", { class: "about" }, `${plural(theme.passages, "passage")}${copies} of ${plural(theme.document_count, "document")}`), made("span", { class: "track" }, bar)));
  const fill = () => {
    if (box.dataset.filled) return;
    box.dataset.filled = "yes";
    box.append(made("div", { class: "inside" }, ...summaryOfTheme(theme), ...theme.quotes.map(quoteBox),
      ...(theme.over_time.length > 1 ? [made("h3", {}, "Share over time"), periodsBox(theme.over_time)] : []),
      ...(theme.themes.length ? [made("h3", {}, "Narrower themes"), ...theme.themes.map((one) => themeBox(one, largest))] : []),
      ...documentsOfTheme(theme)));
  };
  box.unfold = () => { fill(); box.open = true; };
  box.addEventListener("toggle", fill);
  return box;
}

/** Unfold a theme and the wider ones around it. */
function unfoldTheme(id) {
  const parts = id.split(".");
  parts.forEach((_, place) => at(`theme-${parts.slice(0, place + 1).join(".")}`)?.unfold());
  const summary = at(`theme-${id}`)?.firstElementChild;
  if (!summary) return;
  summary.scrollIntoView({ block: "start" });
  summary.focus();
}

let finding = 0;

async function showThemes(asked) {
  const filter = asked.get("filter") || "";
  const own = finding += 1;
  at("themes-filter").value = filter;
  at("themes-filter").closest("details").hidden = !served;
  at("whole").hidden = !chosen().modes.includes("survey");
  at("themes-about").textContent = "Finding themes";
  at("themes-list").replaceChildren();
  try {
    const reply = await call(`/v1/themes?${indexQuery()}${filter ? `&filter=${encodeURIComponent(filter)}` : ""}`);
    const found = data(await reply.text());
    if (own !== finding) return;
    themes = { ...found, filter };
    const copies = found.copies ? `; ${count(found.copies)} copies count once` : "";
    at("themes-about").textContent = found.themes.length
      ? `${plural(found.themes.length, "theme")} in ${plural(found.passages, "passage")} of ${plural(found.documents, "document")}${copies}`
      : "There are no passages to find themes in.";
    const largest = Math.max(...found.themes.map((one) => one.passages), 1);
    at("themes-list").replaceChildren(...found.themes.map((one) => themeBox(one, largest)));
    if (asked.get("theme")) unfoldTheme(asked.get("theme"));
  } catch (error) { if (own === finding) at("themes-about").textContent = error.message; }
}

/** Show in the view Documents that it lists those of a theme. */
function showThemeOfDocuments(id) {
  at("documents-theme").hidden = !id;
  if (!id) return;
  const known = [...everyTheme(themes.themes)].find((one) => one.id === id);
  at("documents-theme").replaceChildren(made("a", { href: themeAddress("themes", id) }, `Theme ${short(id, 40)}`),
    made("span", { dir: "auto" }, known ? known.label : ""), made("a", { href: addressOf("documents") }, "All documents"));
}

/** Answer a question about the whole from many documents, by theme. */
function askAboutTheWhole(question) {
  askAnew(question, "survey");
}

at("whole").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = at("whole-question").value.trim();
  if (!question) return;
  at("ask-filter").value = themes.filter;
  askAboutTheWhole(question);
});
at("themes-filter").addEventListener("change", () => {
  const filter = at("themes-filter").value.trim();
  visit(addressOf("themes", { filter }));
});
