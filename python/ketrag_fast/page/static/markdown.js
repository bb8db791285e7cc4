"use strict";
// Passages as people read them: Markdown, tables and code become elements. Every string is inserted as text.
const CODE = /\.(?:pyi?|m?jsx?|tsx?|rs|c|h|cc|cpp|hpp|java|kt|go|rb|php|swift|scala|sh|sql|css|toml|ya?ml|jsonl?|ini|xml|tex)(?:#|::|$)/i;
const UNFORMATTED = /\.(?:te?xt|log|eml|srt|vtt)$/i;
const MARKDOWN = /\.(?:md|mdx|markdown|ipynb)$/i;

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+(.*)|$)/;
const QUOTE = /^ {0,3}> ?/;
const ROW = /^\s*\|.*\|\s*$/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const DEEPEST = 8;

const INDENTED = /^(?: {4}|\t)/;

const indent = (line) => /^\s*/.exec(line)[0].length;
const isTable = (lines, at) => ROW.test(lines[at])
  || (lines[at].includes("|") && at + 1 < lines.length && lines[at + 1].includes("|") && DIVIDER.test(lines[at + 1]));
const isBlock = (lines, at) => [FENCE, HEADING, RULE, ITEM, QUOTE].some((kind) => kind.test(lines[at])) || isTable(lines, at);

// Code; [[wiki links]]; links and images; bold; emphasis; struck text; <addresses>; escaped punctuation.
const INLINE = new RegExp([
  "(?<tick>`+)(?<code>.+?)(?<!`)\\k<tick>(?!`)",
  "!?\\[\\[(?<wiki>[^\\]|\\n]+)(?:\\|(?<alias>[^\\]\\n]+))?\\]\\]",
  "!?\\[(?<label>[^\\]\\n]*)\\]\\(<?(?<target>[^()\\s>]*(?:\\([^()\\s]*\\)[^()\\s>]*)?)>?(?:\\s+\"[^\"\\n]*\")?\\)",
  "(?<strong>\\*\\*|__)(?=\\S)(?<bold>.+?)(?<=\\S)\\k<strong>",
  "(?<![\\p{L}\\p{N}_*])(?<mark>[*_])(?=[^\\s*_])(?<em>.+?)(?<=\\S)\\k<mark>(?![\\p{L}\\p{N}_*])",
  "~~(?=\\S)(?<struck>.+?)(?<=\\S)~~",
  "<(?<address>https?:[^\\s>]+)>",
  "\\\\(?<plain>[!-\\/:-@\\[-`{-~])",
].join("|"), "gsu");

const link = (target, ...inside) => (/^(?:https?|mailto):/i.test(target)
  ? made("a", { href: target, rel: "noopener noreferrer", target: "_blank" }, ...inside) : made("span", {}, ...inside));

/** The nodes of a line or paragraph. */
function inlines(text, depth = 0) {
  const nodes = [];
  let last = 0;
  const within = (inner) => (depth < DEEPEST ? inlines(inner, depth + 1) : [inner]);
  for (const hit of text.matchAll(INLINE)) {
    const { code, wiki, alias, label, target, bold, em, struck, address, plain } = hit.groups;
    nodes.push(text.slice(last, hit.index));
    last = hit.index + hit[0].length;
    if (code !== undefined) nodes.push(made("code", { dir: "ltr" }, code.trim() || code));
    else if (wiki !== undefined) nodes.push(wikiLink(wiki, alias || wiki));
    else if (label !== undefined) nodes.push(link(target, ...within(label || target)));
    else if (bold !== undefined) nodes.push(made("strong", {}, ...within(bold)));
    else if (em !== undefined) nodes.push(made("em", {}, ...within(em)));
    else if (struck !== undefined) nodes.push(made("s", {}, ...within(struck)));
    else nodes.push(address === undefined ? plain : link(address, address));
  }
  return [...nodes, text.slice(last)].filter(Boolean);
}

function tableOf(lines) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => inlines(cell.trim()));
  const head = lines.length > 1 && DIVIDER.test(lines[1]) ? [lines[0]] : [];
  const rows = lines.slice(head.length).filter((line) => !DIVIDER.test(line));
  const row = (name) => (line) => made("tr", {}, ...cells(line).flatMap((cell) => [made(name, {}, ...cell), " "]));
  return made("div", { class: "wide-table" }, made("table", {},
    ...(head.length ? [made("thead", {}, ...head.map(row("th")))] : []), made("tbody", {}, ...rows.map(row("td")))));
}

/** The lines of a list item after its first one: indented lines, and lines that continue its paragraph. */
function itemEnd(lines, at, own) {
  let end = at + 1;
  for (; end < lines.length; end += 1) {
    const blank = !lines[end].trim();
    if (blank && (end + 1 >= lines.length || indent(lines[end + 1]) <= own)) break;
    if (!blank && indent(lines[end]) <= own && (isBlock(lines, end) || !lines[end - 1].trim())) break;
  }
  return end;
}

function listOf(lines, first, depth) {
  const [, space, sign] = ITEM.exec(lines[first]);
  const isOrdered = /\d/.test(sign);
  const list = made(isOrdered ? "ol" : "ul", isOrdered ? { start: parseInt(sign, 10) } : {});
  let at = first;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || RULE.test(lines[at]) || /\d/.test(item[2]) !== isOrdered || item[1].length > space.length + 3) break;
    const end = itemEnd(lines, at, item[1].length);
    const [head, ...rest] = blocks([item[3] || "", ...lines.slice(at + 1, end).map((line) => line.slice(Math.min(indent(line), item[1].length + 2)))], depth + 1);
    list.append(made("li", {}, ...(head && head.nodeName === "P" ? head.childNodes : [head || ""]), ...rest));
    for (at = end; at < lines.length && !lines[at].trim() && ITEM.test(lines[at + 1] || "");) at += 1;
  }
  return [list, at];
}

/** The elements of the lines of a Markdown text. */
function blocks(lines, depth = 0) {
  const nodes = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    let end = at + 1;
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    const take = (test) => { while (end < lines.length && test(end)) end += 1; return lines.slice(at, end); };
    if (!line.trim()) { /* between blocks */ } else if (depth > DEEPEST) {
      nodes.push(made("p", {}, take(() => true).join("\n")));
    } else if (fence) {
      const inside = take((next) => !lines[next].trim().startsWith(fence[1])).slice(1);
      nodes.push(made("pre", {}, made("code", { dir: "ltr" }, inside.join("\n"))));
      end += 1;
    } else if (heading) {
      if (heading[2]) nodes.push(made(heading[1].length < 3 ? "h5" : "h6", {}, ...inlines(heading[2])));
    } else if (INDENTED.test(line) && !ITEM.test(line)) {
      const inside = take((next) => INDENTED.test(lines[next])).map((own) => own.replace(INDENTED, ""));
      nodes.push(made("pre", {}, made("code", { dir: "ltr" }, inside.join("\n"))));
    } else if (RULE.test(line)) nodes.push(made("hr"));
    else if (QUOTE.test(line)) nodes.push(made("blockquote", {}, ...blocks(take((next) => QUOTE.test(lines[next])).map((own) => own.replace(QUOTE, "")), depth + 1)));
    else if (isTable(lines, at)) nodes.push(tableOf(take((next) => lines[next].includes("|"))));
    else if (ITEM.test(line)) {
      const [list, after] = listOf(lines, at, depth);
      nodes.push(list);
      end = after;
    } else {
      const own = take((next) => lines[next].trim() && !/^=+\s*$/.test(lines[next]) && !isBlock(lines, next));
      const isTitle = end < lines.length && /^(?:=+|-{2,})\s*$/.test(lines[end]);
      nodes.push(made(isTitle ? "h5" : "p", {}, ...inlines(own.map((one) => one.trim()).join("\n"))));
      if (isTitle) end += 1;
    }
    at = end;
  }
  return nodes;
}

// Scripts without spaces between words.
const UNSPACED = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]/;

/** Mark words in the text of an element. */
function markWords(box, words) {
  const known = [...new Set(words)].filter(Boolean).sort((a, b) => b.length - a.length);
  if (!known.length) return;
  const wanted = new RegExp(known.map((word) => {
    const plain = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return UNSPACED.test(word) ? plain : `(?<![\\p{L}\\p{M}\\p{N}])${plain}(?![\\p{L}\\p{M}\\p{N}])`;
  }).join("|"), "giu");
  const walk = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walk.nextNode()) texts.push(walk.currentNode);
  for (const node of texts) {
    const parts = [];
    let last = 0;
    for (const hit of node.data.matchAll(wanted)) {
      parts.push(node.data.slice(last, hit.index), made("mark", {}, hit[0]));
      last = hit.index + hit[0].length;
    }
    if (parts.length) node.replaceWith(...parts, node.data.slice(last));
  }
}

/** The text of a document as elements, with words marked. Its name decides between Markdown, code and plain text. */
function rendered(text, words, name = "") {
  const box = made("div", { class: MARKDOWN.test(name) ? "text" : "text lines", dir: "auto" });
  if (CODE.test(name)) box.append(made("pre", {}, made("code", { dir: "ltr" }, text)));
  else if (UNFORMATTED.test(name)) box.append(made("p", { class: "plain" }, text));
  else box.append(...blocks(text.split("\n")).flatMap((node, at) => (at ? ["\n", node] : [node])));
  markWords(box, words);
  return box;
}
