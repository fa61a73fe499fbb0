// Elements from plain values. Text only ever becomes text: nothing here can turn it into markup.

import { session } from "./api.js";

/** An element with properties and children; what is null or false is left out. */
export function h(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  add(made, children);
  return made;
}

function add(to, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    to.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Put these in place of everything that an element holds. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** The address of a source: a link only if a browser opens it as a site, and never with a word about us. */
export function address(text, name = text) {
  let web = false;
  try { web = ["http:", "https:"].includes(new URL(text).protocol); } catch { /* Not an address that browsers know. */ }
  return web ? h("a", { href: text, rel: "noopener noreferrer", target: "_blank" }, name) : h("span", {}, name);
}

/** The icon of a source's site, where icons were asked for; from our own server, with its room kept free. */
export const icon = (id) => (session.icons ? h("img", { class: "icon", src: `/dashboard/sources/${id}/icon`, alt: "", width: 16, height: 16, loading: "lazy", decoding: "async" }) : null);

/** A short message that goes away by itself, with something that can be done about it, if there is. */
export function note(text, bad = false, action = null, wait = bad ? 10000 : 5000) {
  const shown = h("p", { class: bad ? "note bad" : "note" }, text,
    action ? h("button", { type: "button", class: "quiet", onclick: () => { shown.remove(); action.does(); } }, action.name) : null);
  document.getElementById("notes").append(shown);
  setTimeout(() => shown.remove(), wait);
  return shown;
}

/** Text of a cell that may have several lines. */
export const long = (text) => h("span", { class: "long" }, text);

/** Words between commas, each once. */
export const words = (text) => [...new Set(text.split(",").map((one) => one.trim()).filter(Boolean))];

/** The lines of a text that say something. */
export const lines = (text) => text.split("\n").map((one) => one.trim()).filter(Boolean);

/** What a search for a tag or a host is written like. */
export const term = (name, value) => `${name}:${/[\s"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value}`;

/** A label and its field, one below the other; `about` is said beneath. */
export const field = (name, input, about = "") => h("div", { class: "field" }, h("label", { for: input.id }, name), input,
  about ? h("small", {}, about) : null);

/** Wait until somebody has stopped typing. */
export function calmly(work, wait = 150) {
  let timer = 0;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => work(...given), wait); };
}

/** A number with its name, and a line below. */
export function tile(name, value, about = "", more = "") {
  return h("div", { class: `tile ${more}` }, h("dt", {}, name), h("dd", {}, h("strong", {}, value),
    about ? h("span", { class: "muted" }, about) : null));
}

/** A table with a caption, headings (text or element) and rows of cells; cells repeat their heading on a phone. */
export function table(caption, headings, rows, empty = "Nothing here.") {
  const names = headings.map((one) => (one instanceof Node ? one.textContent : one));
  const row = (cells) => h("tr", {}, cells.map((cell, i) => h(i ? "td" : "th", i ? { "data-name": names[i] } : { scope: "row" }, cell)));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: "stack plain" }, h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, headings.map((one) => (one instanceof HTMLTableCellElement ? one : h("th", { scope: "col" }, one))))),
      h("tbody", {}, rows.length ? rows.map(row) : h("tr", {}, h("td", { colspan: headings.length, class: "muted" }, empty)))));
}
