"use strict";
// Requests to the service that the page is from. A page without a server has offline.js instead.
const served = true;

/** A refusal with its code, message and hint. */
class Refused extends Error {
  constructor(message, code = "") {
    super(message);
    this.code = code;
  }
}

async function call(path, body, signal) {
  const options = body ? { method: "POST", body: JSON.stringify(body), keepalive: Boolean(body.remove) } : {};
  return request(path, { ...options, signal }, "application/json");
}

/** Send the bytes of a file. */
async function sendFile(path, file) {
  return request(path, { method: "POST", body: file }, "application/octet-stream");
}

async function request(path, options, type) {
  const headers = { "Content-Type": type };
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  const reply = await fetch(path, { ...options, headers });
  if (reply.ok) return reply;
  const said = await reply.json().catch(() => ({ message: reply.statusText }));
  if (reply.status === 401) at("token-form").hidden = false;
  const wait = reply.headers.get("Retry-After");
  const text = [said.message, said.hint, wait && `retry in ${wait} s`].filter(Boolean).join(" · ");
  throw new Refused(text, said.code || (said.error || {}).code);
}
