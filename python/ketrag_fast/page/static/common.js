"use strict";
// Helpers of all scripts. Text from documents and models is inserted as text, never as markup.
/** @param {string} id @returns {HTMLElement} */
const at = (id) => document.getElementById(id);

const SVG = ["http:", "", "www.w3.org", "2000", "svg"].join("/");

/** Return an element with attributes (`on`: click handler, `class`) and children; names with a colon are SVG. */
const made = (name, about = {}, ...inside) => {
  const node = name.startsWith("svg:") ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(about)) {
    if (key === "on") node.addEventListener("click", value);
    else if (key === "class") node.setAttribute("class", value);
    else node.setAttribute(key, value);
  }
  node.append(...inside);
  return node;
};

const UNSEEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]/;

/** Show control characters, invisible characters and bidirectional marks as escapes. */
function visible(text) {
  if (!UNSEEN.test(text)) return text;
  return text.replace(/\r\n/g, "\n")
    .replace(/[\x00-\x08\x0b-\x1f]/g, (one) => String.fromCharCode(0x2400 + one.charCodeAt(0)))
    .replace(/[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]/g,
      (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Make all strings of a JSON value visible, in place. Columns of numbers are passed over. */
function cleaned(value) {
  if (typeof value === "string") return visible(value);
  if (!value || typeof value !== "object") return value;
  if (Array.isArray(value)) {
    const number = typeof value[0] === "number" && typeof value[value.length - 1] === "number";
    if (!number) for (let place = 0; place < value.length; place += 1) value[place] = cleaned(value[place]);
    return value;
  }
  for (const name of Object.keys(value)) {
    const own = cleaned(value[name]);
    if (UNSEEN.test(name)) { delete value[name]; value[visible(name)] = own; } else value[name] = own;
  }
  return value;
}

/** Parse JSON whose strings are made visible. */
const data = (text) => cleaned(JSON.parse(text));

const short = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);
const count = (number) => number.toLocaleString("en");
const plural = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;
const percent = (share) => `${share > 0 && share < 0.005 ? "<1" : Math.round(100 * share)} %`;

/** A name that is stored in capitals or in small letters, as people write it; short ones in capitals are abbreviations. */
function properName(name) {
  const isStored = name === name.toLowerCase() || (name === name.toUpperCase() && (name.length > 3 || name.includes(" ")));
  return isStored ? name.toLowerCase().replace(/(^|[\s-])\p{L}/gu, (letter) => letter.toUpperCase()) : name;
}
