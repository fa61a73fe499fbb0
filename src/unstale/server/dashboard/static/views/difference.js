// How two versions differ, by words: one below the other, or side by side.

import { h } from "../dom.js";

const KINDS = { "+": "added", "-": "taken", "@": "skip", " ": "same" };
const WORDS = { "+": "added: ", "-": "taken away: " };

/** Lines with their signs. */
export const marked = (lines, name) => h("pre", { class: "difference", tabindex: "0", role: "region", "aria-label": name }, lines.map(([kind, line]) => h("span", { class: KINDS[kind] },
  WORDS[kind] ? h("span", { class: "hidden" }, WORDS[kind]) : null, `${kind === "@" ? "…" : kind} ${line}\n`)));

const parts = (all, tag) => all.map(([differs, text]) => (differs ? h(tag, {}, text) : text));

/** One below the other: a line that became another is there twice. */
function below(rows) {
  const line = (kind, all, tag) => h("span", { class: KINDS[kind] }, WORDS[kind] ? h("span", { class: "hidden" }, WORDS[kind]) : null, `${kind === "@" ? "…" : kind} `, parts(all, tag), "\n");
  return h("pre", { class: "difference", tabindex: "0", role: "region", "aria-label": "Lines" }, rows.map(([kind, old, now]) => (kind === "~" ? [line("-", old, "del"), line("+", now, "ins")]
    : line(kind, kind === "-" ? old : now, "span"))));
}

/** Side by side: the old on the left. */
function beside(rows) {
  const cell = (kind, all, tag) => h("td", { class: all ? KINDS[kind] : "none" }, all ? [WORDS[kind] ? h("span", { class: "hidden" }, WORDS[kind]) : null, parts(all, tag)] : null);
  return h("div", { class: "difference sides", tabindex: "0", role: "region", "aria-label": "Lines" }, h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Before"), h("th", { scope: "col" }, "After"))),
    h("tbody", {}, rows.map(([kind, old, now]) => (kind === "@" ? h("tr", {}, h("td", { colspan: 2, class: "skip" }, parts(now, "span")))
      : h("tr", {}, cell(kind === "~" ? "-" : kind, old, "del"), cell(kind === "~" ? "+" : kind, now, "ins")))))));
}

/** What the server found, in the layout that is wanted. */
export function difference(found, sides) {
  const rows = found.rows;
  return h("div", {},
    rows.length ? (sides && found.old ? beside(rows) : below(rows)) : h("p", { class: "muted" }, found.same ? "Both versions are the same." : found.cut ? "They differ, but not in the part that is compared: it is long."
      : found.form === "source" ? "They differ in nothing that can be seen: in how lines end, or in bytes that are no text." : "They differ in nothing that is seen in this form; compare them as they are."),
    found.cut ? h("p", { class: "muted" }, "It is long: what is shown is a part. The whole is in the files.") : null);
}
