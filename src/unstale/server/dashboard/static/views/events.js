// The log: what polls found, newest first, as it happens.

import { get } from "../api.js";
import { fill, h, long, table } from "../dom.js";
import { short } from "../format.js";
import { live } from "../live.js";

const MEANING = { "poll.changed": "a new version was copied", "poll.unchanged": "the copy was still fresh", "poll.failed": "the source did not answer" };

export async function events(place, context) {
  const rows = h("div", {});
  const which = h("select", { id: "which" }, h("option", { value: "" }, "all events"), Object.keys(MEANING).map((name) => h("option", { value: name }, name)));
  let all = [];
  let asked = 0;
  const draw = () => fill(rows, table("Events", ["Time", "Event", "Meaning", "Source"], all.filter((one) => !which.value || one.event === which.value).map((one) => [
    h("time", { datetime: one.at }, new Date(one.at).toLocaleString()),
    h("span", { class: `tag ${one.event.slice(5)}` }, one.event), long(MEANING[one.event] ?? ""),
    h("a", { href: `#/sources/${one.source}`, title: one.address }, short(one.address) || `source ${one.source}`),
  ]), "Nothing has been polled yet."));
  const read = async () => {
    const found = await get("/dashboard/log", { limit: 300 });
    if (!context.current()) return;
    const moved = found.events[0]?.token !== all[0]?.token || found.events.length !== all.length;
    all = found.events;
    // Whoever is in the table with the keyboard is not thrown out of it.
    if (moved && !rows.querySelector("a:focus")) draw();
  };
  const onStatus = () => { if (Date.now() - asked > 2000) { asked = Date.now(); read().catch(() => {}); } };
  which.addEventListener("change", draw);
  live.addEventListener("status", onStatus);
  context.ending(() => live.removeEventListener("status", onStatus));
  await read();
  draw();
  if (!context.current()) return;
  fill(place, h("h1", {}, "Events"), h("div", { class: "controls" }, h("label", { for: "which" }, "Show"), which), rows);
}
