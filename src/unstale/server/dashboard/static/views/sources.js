// All sources: searched, sorted and cut to size by the server.

import { get } from "../api.js";
import { calmly, fill, h } from "../dom.js";
import { ago, count, due, every, percent, short, span } from "../format.js";

const SIZE = 50;
// What is shown, how it is sorted, and which end comes first.
const COLUMNS = [["Source", "id", false], ["Fresh now", "fresh", false], ["Age", "age", true], ["Changes", "change_rate", true],
  ["Polled every", "interval", false], ["Next poll", "due", false], ["Last change", "changed", true], ["Weight", "weight", true], ["Failures", "failures", true]];
const STATES = [["", "all sources"], ["stale", "probably stale"], ["failing", "failing"], ["paused", "paused"], ["never", "never answered"]];

export async function sources(place, context) {
  const asked = { text: context.query.get("text") ?? "", host: context.query.get("host") ?? "", state: context.query.get("state") ?? "",
    sort: context.query.get("sort") ?? "fresh", down: context.query.get("down") === "true",
    offset: SIZE * Math.max(0, Math.min(2000, Math.trunc(Number(context.query.get("page"))) || 1) - 1), limit: SIZE };
  if (!COLUMNS.some(([, key]) => key === asked.sort)) asked.sort = "fresh";
  const body = h("tbody", {});
  const told = h("p", { class: "muted", role: "status" });
  let stop = null;

  async function read(quietly = false) {
    stop?.abort();
    const mine = stop = new AbortController();
    let found;
    try { found = await get("/dashboard/table", asked, { signal: mine.signal }); } catch (error) {
      if (error.name !== "AbortError" && context.current()) told.textContent = error.message;
      return;
    }
    if (!context.current() || mine !== stop || (quietly && body.contains(document.activeElement))) return;
    fill(body, found.sources.map(row));
    if (!found.sources.length) fill(body, h("tr", {}, h("td", { colspan: COLUMNS.length, class: "muted" }, "No source is like that.")));
    const total = found.total === null ? "many" : count(found.total);
    const first = found.sources.length ? asked.offset + 1 : 0;
    told.textContent = `${count(first)}–${count(asked.offset + found.sources.length)} of ${total}`
      + (found.sorted ? "" : "; they are still being sorted, by number until then");
    before.disabled = asked.offset === 0;
    page.textContent = `page ${count(asked.offset / SIZE + 1)}`;
    after.disabled = !found.sorted || found.sources.length < SIZE;
    body.dataset.asked = JSON.stringify(asked);
    if (!found.sorted) setTimeout(() => { if (context.current()) read(true); }, 2000);
  }

  // What is shown is in the address: it can be kept, sent and gone back to.
  const where = () => {
    const kept = new URLSearchParams(Object.entries(asked).filter(([name, value]) => value && !["limit", "offset"].includes(name)));
    if (asked.offset) kept.set("page", String(asked.offset / SIZE + 1));
    return `#/sources?${kept}`;
  };
  const change = (more) => {
    Object.assign(asked, { offset: 0 }, more);
    history.replaceState(null, "", where());
    for (const [i, [, key]] of COLUMNS.entries()) heads[i].setAttribute("aria-sort", key !== asked.sort ? "none" : asked.down ? "descending" : "ascending");
    return read();
  };
  const heads = COLUMNS.map(([name, key, down]) => h("th", { scope: "col", "aria-sort": "none" }, h("button", {
    type: "button", class: "sort", onclick: () => change({ sort: key, down: asked.sort === key ? !asked.down : down }) }, name)));
  const search = h("input", { id: "text", type: "search", value: asked.text, placeholder: "part of an address" });
  search.addEventListener("input", calmly(() => change({ text: search.value }), 40));
  const state = h("select", { id: "state" }, STATES.map(([value, name]) => h("option", { value, selected: value === asked.state }, name)));
  state.addEventListener("change", () => change({ state: state.value }));
  const turn = (by) => { asked.offset = Math.max(0, asked.offset + by); history.pushState(null, "", where()); read(); };
  const page = h("span", { class: "muted" });
  const before = h("button", { type: "button", class: "quiet", onclick: () => turn(-SIZE) }, "Before");
  const after = h("button", { type: "button", class: "quiet", onclick: () => turn(SIZE) }, "Next");
  const host = asked.host ? h("button", { type: "button", class: "quiet", onclick: (event) => { event.target.remove(); change({ host: "" }); } }, `only ${asked.host} ×`) : null;

  fill(place, h("h1", {}, "Sources"),
    h("div", { class: "controls" }, h("label", { for: "text" }, "Search"), search, h("label", { for: "state" }, "Show"), state, host),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Sources" },
      h("table", { class: "stack" }, h("caption", { class: "hidden" }, "Sources and how fresh their copies are"), h("thead", {}, h("tr", {}, heads)), body)),
    h("div", { class: "controls" }, before, page, after, told));
  await change({ offset: asked.offset });
  const timer = setInterval(() => { if (!document.hidden) read(true); }, 10000);
  context.ending(() => { clearInterval(timer); stop?.abort(); });
}

function row(one) {
  const cells = [percent(one.fresh, 0), one.checked_at ? span(one.age) : "–",
    one.change_rate ? [every(one.change_rate), h("small", {}, ` (${span(1 / one.change_rate_high)} – ${span(1 / one.change_rate_low)})`)] : "–",
    one.interval === null ? one.waits_for : span(one.interval), one.paused ? "–" : due(one.due_at), ago(one.changed_at), count(one.weight),
    one.failures ? h("span", { class: "bad" }, count(one.failures)) : "0"];
  return h("tr", {}, h("th", { scope: "row" }, h("a", { href: `#/sources/${one.id}`, title: one.address }, short(one.address))),
    cells.map((cell, i) => h("td", { "data-name": COLUMNS[i + 1][0] }, cell)));
}
