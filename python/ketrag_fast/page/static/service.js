"use strict";
// Requests to the service that the page is from, and signing in. A page without a server has offline.js instead.
const served = true;

/** A refusal with its code, message and hint, and the seconds after which to try again. */
class Refused extends Error {
  constructor(message, code = "", wait = 0) {
    super(message);
    this.code = code;
    this.wait = wait;
  }
}

async function call(path, body, signal) {
  const options = body ? { method: "POST", body: JSON.stringify(body), keepalive: Boolean(body.remove) } : {};
  return request(path, { ...options, signal }, "application/json");
}

/** Send the bytes of a file. */
async function sendFile(path, file) {
  try {
    return await request(path, { method: "POST", body: file }, "application/octet-stream");
  } catch (error) {
    if (error.code !== "unreachable") throw error;
    throw new Refused("The file could not be sent: the connection broke, or the file was moved. Choose it again.", error.code);
  }
}

async function request(path, options, type) {
  const headers = { "Content-Type": type };
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  let reply;
  try {
    reply = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The service does not answer. Check that it is running, then try again.", "unreachable");
  }
  const current = sessionStorage.getItem("token") === token; // not a late reply to what was asked with another token
  if (reply.ok) { if (current) showSignedIn(token); return reply; }
  const said = await reply.json().catch(() => ({ message: reply.statusText }));
  if (reply.status === 401 && current) showSignIn(token ? "This token is not accepted. It may be misspelt, or has been withdrawn." : "");
  const wait = Number(reply.headers.get("Retry-After")) || 0;
  const text = [said.message, said.hint, wait && `Try again in ${wait} s`].filter(Boolean).map(sentence).join(" ");
  throw new Refused(text, said.code || (said.error || {}).code, wait);
}

/** Show the page that asks for a token, instead of all views. The address stays, and is shown after signing in. */
function showSignIn(problem) {
  sessionStorage.clear();
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  document.body.classList.add("locked");
  at("sign-in").hidden = false;
  at("sign-in-problem").textContent = problem;
  at("account").hidden = true;
  at("token").focus();
}

function showSignedIn(token) {
  document.body.classList.remove("locked");
  at("sign-in").hidden = true;
  at("account").hidden = !token;
}

at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", at("token").value.trim());
  at("token").value = "";
  if (indexes.length) location.reload(); else begin(); // nothing that another user has read stays in the page
});
at("log-out").addEventListener("click", () => {
  document.body.classList.add("locked"); // a reply that comes before the page is loaded again stores nothing
  sessionStorage.clear();
  history.replaceState(null, "", "#ask");
  location.reload(); // nothing that was read stays in the page
});
