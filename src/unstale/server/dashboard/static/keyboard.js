// Keys for who would rather not take a hand off the keyboard: they do nothing while something is typed.

import { fill, h } from "./dom.js";

const KEYS = [["/", "search the sources"], ["a", "add sources"], ["j, k", "go down and up a table"], ["x", "choose the source of the row"], ["Enter", "open it"],
  ["g then o, s, b, e", "go to overview, sources, budget, events"], ["?", "show or hide these"]];
const PLACES = { o: "#/", s: "#/sources", b: "#/budget", e: "#/events" };

export function keyboard() {
  let before = "";
  const help = h("dialog", { id: "keys", "aria-labelledby": "keys-title" });
  fill(help, h("h2", { id: "keys-title" }, "Keys"), h("dl", { class: "keys" }, KEYS.map(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)])),
    h("button", { type: "button", onclick: () => help.close() }, "Close"));
  document.body.append(help);

  /** The link of the row below or above the one where we are. */
  const move = (by) => {
    const links = [...document.querySelectorAll("main tbody th a:first-of-type")].filter((one) => !one.classList.contains("chip"));
    const at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + by))]?.focus();
  };
  addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest?.("input, textarea, select, [contenteditable]")) return;
    const first = before;
    before = key === "g" ? "g" : "";
    if (first === "g" && PLACES[key]) location.hash = PLACES[key];
    else if (key === "?") { if (help.open) help.close(); else help.showModal(); }
    else if (help.open) return;
    else if (key === "/") search();
    else if (key === "a") location.hash = "#/add";
    else if (key === "j" || key === "k") move(key === "j" ? 1 : -1);
    else if (key === "x") document.activeElement.closest?.("tr")?.querySelector(".pick")?.click();
    else return;
    event.preventDefault();
  });

  /** To the field where sources are searched, wherever we are. */
  function search() {
    const into = document.getElementById("text");
    if (into) { into.focus(); into.select(); return; }
    location.hash = "#/sources";
    const seen = new MutationObserver(() => {
      const found = document.getElementById("text");
      if (found) { seen.disconnect(); found.focus(); }
    });
    seen.observe(document.getElementById("view"), { childList: true, subtree: true });
  }
}
