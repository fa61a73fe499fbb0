// Hosts: what they are granted, and how many of their sources are in trouble.

import { get, operator } from "../api.js";
import { fill, h, table, term } from "../dom.js";
import { count, short, span } from "../format.js";

export async function hosts(place, context) {
  const { hosts: rows } = await get("/dashboard/hosts");
  if (!context.current()) return;
  fill(place, h("h1", {}, "Hosts"),
    h("p", { class: "muted" }, "A host is asked no more often than its owner would like: polls are spaced, few at a time, within its cap and its hours. Where a cap binds, its sources pay a surcharge, told here.", operator() ? [" Spacing and polls at a time can be changed in the ", h("a", { href: "#/settings" }, "settings"), "."] : null),
    table("Hosts", ["Host", "Sources", "Paused", "Failing", "Spacing", "At a time", "Cap", "Surcharge", "Hours"], rows.map((row) => [
      h("a", { href: `#/sources?${new URLSearchParams({ search: term("host", row.host) })}` }, short(row.host) || "(none)"), count(row.sources),
      count(row.paused), row.failing ? h("span", { class: "bad" }, count(row.failing)) : "0",
      row.spacing === undefined ? "–" : span(row.spacing), row.concurrency ?? "–",
      row.budget_per_day ? `${count(row.budget_per_day)}\u00a0/\u00a0day` : "none", row.surcharge > 1.01 ? `× ${count(row.surcharge)}` : "none", row.windows || "any",
    ]), "No hosts yet."));
}
