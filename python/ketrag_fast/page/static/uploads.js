"use strict";
// Adding and removing documents: a row for each file, a question before a document is removed, and Undo.
const GIVE_UP_MS = 600_000;
const UNDO_MS = 10_000;
/** Codes of refusals after which the same request is sent again: another change of the index is running. */
const LATER = ["index_locked", "busy", "starting"];

const rest = (ms) => new Promise((done) => setTimeout(done, ms));

/** Send a request; while the index is being changed, wait and send it again. `tell` is called with what it waits for. */
async function patiently(send, tell) {
  const until = Date.now() + GIVE_UP_MS;
  for (;;) {
    try { return await send(); } catch (error) {
      if (!LATER.includes(error.code) || Date.now() > until) throw error;
      tell("waiting: the index is being changed");
      await rest(1000 * (error.wait || 1));
    }
  }
}

const UPLOADED = {
  read: (reply) => ["read", reply.documents.length !== 1 && plural(reply.documents.length, "document"), reply.pages && plural(reply.pages, "page")].filter(Boolean).join(", "),
  refused: (reply) => `not added: ${reply.warnings[0] || "it has no text"}`,
  exists: (reply) => `not added: ${short(reply.existing[0], 100)} is in the index already`,
};

/** The files that wait, each with its row. */
const queue = [];
let isSending = false;

/** Send one file, and show in its row what was read, or why not. */
async function uploadFile({ file, row }, replace = false) {
  const [state, about] = row.lastElementChild.children;
  const tell = (name, text) => { row.dataset.state = name; state.textContent = text; };
  tell("reading", "reading");
  about.replaceChildren();
  try {
    const query = new URLSearchParams({ name: file.name, index: chosen().name, ...(replace && { replace: "yes" }) });
    const reply = data(await (await patiently(() => sendFile(`/v1/uploads?${query}`, file), (text) => tell("waiting", text))).text());
    tell(reply.state, UPLOADED[reply.state](reply));
    const further = reply.state === "refused" ? reply.warnings.slice(1) : reply.warnings;
    about.replaceChildren(...further.slice(0, 5).map((text) => made("p", { class: "about" }, sentence(short(text, 300)))));
    if (reply.state === "exists" && abilities.has("remove")) {
      about.append(made("button", { type: "button", class: "small", on: async () => { await uploadFile({ file, row }, true); showUploaded(); await showChange(); } }, "Replace it"));
    }
  } catch (error) { tell("refused", `not added: ${error.message}`); }
}

/** Say how many of the files are done, and how. */
function showUploaded() {
  const states = [...at("uploads").querySelectorAll("tr")].map((row) => row.dataset.state);
  const of = (...names) => states.filter((state) => names.includes(state)).length;
  const parts = [[of("read"), "read"], [of("refused", "exists"), "not added"], [of("waiting", "reading"), "to go"]].filter(([number]) => number);
  at("uploads-about").textContent = `${plural(states.length, "file")}: ${parts.map(([number, what]) => `${count(number)} ${what}`).join(", ")}`;
}

/** Show the documents that there are now. */
async function showChange() {
  await begin();
  if (address().view === "documents") showDocuments(address().query);
}

/** Add files one after the other, each with a row that tells how far it is; further files wait for their turn. */
async function addFiles(files) {
  const entries = [...files].map((file) => ({ file, row: made("tr", { "data-state": "waiting" }, made("td", {}, short(file.name, 200)),
    made("td", {}, made("span", { class: "state", role: "status" }, "waiting"), made("div", {}))) }));
  if (!entries.length) return;
  if (!isSending) at("uploads").replaceChildren(made("tbody", {}));
  at("uploads").lastElementChild.append(...entries.map(({ row }) => row));
  at("uploads-part").hidden = false;
  queue.push(...entries);
  showUploaded();
  if (isSending) return;
  isSending = true;
  while (queue.length) {
    await uploadFile(queue.shift());
    showUploaded();
  }
  isSending = false;
  await showChange();
}

/** The documents that will be removed unless somebody presses Undo, each with its timer. */
const removals = new Map();

/** Ask whether a document is to be removed. */
function askToRemove(name, row) {
  at("confirm-text").textContent = `${short(name, 200)} will not be found any more. The file itself stays where it is.`;
  at("confirm").returnValue = "";
  at("confirm").onclose = () => { if (at("confirm").returnValue === "yes") removeLater(name, row); };
  at("confirm").showModal();
}

const say = (...parts) => at("documents-status").replaceChildren(...parts);

/** Hide a row, offer to undo, and remove the document when the time is over or the page is closed. */
function removeLater(name, row) {
  row.hidden = true;
  const undo = made("button", { type: "button", class: "small", on: () => {
    clearTimeout(removals.get(name));
    removals.delete(name);
    row.hidden = false;
    say(`${short(name, 200)} stays.`);
  } }, "Undo");
  say(`${short(name, 200)} is removed. `, undo);
  undo.focus();
  removals.set(name, setTimeout(() => { removals.delete(name); removeNow(name, row); }, UNDO_MS));
}

async function removeNow(name, row) {
  const remove = { index: chosen().name, remove: [name] };
  try {
    await patiently(() => call("/v1/documents", remove), (text) => say(`${short(name, 200)}: ${text}`));
    if (!removals.size) say(`${short(name, 200)} is removed.`);
    await showChange();
  } catch (error) { row.hidden = false; say(`${short(name, 200)} could not be removed. ${error.message}`); }
}

window.addEventListener("pagehide", () => {
  const names = [...removals.keys()];
  for (const timer of removals.values()) clearTimeout(timer);
  removals.clear();
  if (names.length) call("/v1/documents", { index: chosen().name, remove: names }).catch(() => {});
});

/** The files of a dropped entry: the file itself, or those in a folder and the folders in it. */
async function* filesIn(entry) {
  if (entry.isFile) { yield await new Promise((done, fail) => entry.file(done, fail)); return; }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail)); // at most a hundred at a time
    if (!some.length) return;
    for (const one of some) yield* filesIn(one);
  }
}

async function addDropped({ items, files }) {
  const entries = [...items].map((item) => item.webkitGetAsEntry()); // before the first pause: later they are gone
  const plain = [...files];
  const found = [];
  for (const [place, entry] of entries.entries()) {
    if (!entry || entry.isFile) found.push(plain[place]); else for await (const file of filesIn(entry)) found.push(file);
  }
  addFiles(found.filter(Boolean));
}

/** Let files be dropped on any view. Where they cannot be added the browser does not open them instead of the page. */
function listenForFiles() {
  const mark = (is) => document.body.classList.toggle("over", is);
  const withFiles = (act) => (event) => { if ([...event.dataTransfer.types].includes("Files")) { event.preventDefault(); act(event.dataTransfer); } };
  at("add-files").addEventListener("change", (event) => { addFiles(event.target.files); event.target.value = ""; });
  window.addEventListener("dragover", withFiles((given) => {
    given.dropEffect = abilities.has("add") ? "copy" : "none";
    mark(abilities.has("add"));
  }));
  window.addEventListener("dragleave", (event) => { if (!event.relatedTarget) mark(false); });
  window.addEventListener("drop", withFiles((given) => {
    mark(false);
    if (!abilities.has("add")) return;
    if (address().view !== "documents") visit(addressOf("documents"));
    addDropped(given);
  }));
}

listenForFiles();
