// All sources: searched, sorted and cut to size by the server; what is chosen of them is changed together.

import { get, operator, send } from "../api.js";
import { calmly, fill, h, icon, note, term, words } from "../dom.js";
import { ago, count, due, every, percent, short, span } from "../format.js";
import { gone, remove } from "../removing.js";

const SIZE = 50;
// What is shown, how it is sorted, and which end comes first.
const COLUMNS = [["Source", "id", false], ["Fresh now", "fresh", false], ["Age", "age", true], ["Changes", "change_rate", true],
  ["Polled every", "interval", false], ["Next poll", "due", false], ["Last change", "changed", true], ["Weight", "weight", true], ["Failures", "failures", true]];
// What a phone shows of each; the rest is on its page.
const BRIEF = new Set(["id", "fresh", "due"]);
const STATES = [["", "all sources"], ["stale", "probably stale"], ["failing", "failing"], ["paused", "paused"], ["never", "never answered"]];
const HELP = "Words are looked for in addresses and titles. tag:news, host:example.org, kind:feed and title:word choose; so do failing, paused, stale, never; fresh<0.5, age>2h, changed<1d, weight>=3 and failures>2 compare; a dash before any of them turns it round.";

export async function sources(place, context) {
  // Addresses of earlier versions said these one by one.
  const old = [context.query.get("text"), context.query.get("host") && term("host", context.query.get("host")), context.query.get("state")];
  const asked = { search: context.query.get("search") ?? old.filter(Boolean).join(" "),
    sort: context.query.get("sort") ?? "fresh", down: context.query.get("down") === "true",
    offset: SIZE * Math.max(0, Math.min(2000, Math.trunc(Number(context.query.get("page"))) || 1) - 1), limit: SIZE };
  if (!COLUMNS.some(([, key]) => key === asked.sort)) asked.sort = "fresh";
  const may = operator();
  const chosen = new Set();
  // Whether all that the search finds are meant, and not only what is ticked.
  let whole = false;
  let total = 0;
  let shown = [];
  let saved = [];
  const body = h("tbody", {});
  const told = h("p", { class: "muted", role: "status" });
  const bar = h("div", { class: "controls bulk", role: "group", "aria-label": "What can be done with those chosen", hidden: true });
  let stop = null;

  async function read(quietly = false) {
    stop?.abort();
    const mine = stop = new AbortController();
    let found;
    try { found = await get("/dashboard/table", asked, { signal: mine.signal }); } catch (error) {
      if (error.name !== "AbortError" && context.current()) {
        // What was read before stays; where there is nothing, the whole place says so.
        if (shown.length) { told.textContent = error.message; return; }
        body.parentElement.tHead.hidden = told.parentElement.hidden = true;
        fill(body, h("tr", {}, h("td", { colspan: COLUMNS.length + 1 }, h("p", { class: "banner", role: "alert" }, error.message),
          h("p", {}, h("button", { type: "button", class: "quiet", onclick: () => read() }, "Try again")))));
      }
      return;
    }
    if (mine === stop) body.parentElement.tHead.hidden = false;
    if (!context.current() || mine !== stop || (quietly && body.contains(document.activeElement))) return;
    shown = found.sources.filter((one) => !gone.has(one.id));
    fill(body, shown.map((one) => row(one, may ? tick(one) : null)));
    const bare = !shown.length && !asked.offset;
    // What can be sorted and turned over is shown where there is something.
    body.parentElement.tHead.hidden = told.parentElement.hidden = bare;
    if (!shown.length) fill(body, h("tr", {}, h("td", { colspan: COLUMNS.length + 1, class: "muted" }, asked.search ? [h("span", {}, "No source is like that."), " ", h("a", { href: "#/sources" }, "Show all sources")] : [
      "There are no sources yet. ", h("a", { href: "#/add" }, "Add some")])));
    total = found.total;
    const first = shown.length ? asked.offset + 1 : 0;
    told.textContent = `${count(first)}–${count(asked.offset + shown.length)} of ${total === null ? "many" : count(total)}`
      + (found.sorted ? "" : "; they are still being sorted, by number until then");
    before.disabled = asked.offset === 0;
    page.textContent = `page ${count(asked.offset / SIZE + 1)}`;
    after.disabled = !found.sorted || found.sources.length < SIZE;
    body.dataset.asked = JSON.stringify(asked);
    choose();
    // What was known while nobody looked is a while old: it is being read anew.
    if (!found.sorted || (!quietly && Date.now() - Date.parse(found.as_of) > 5000)) setTimeout(() => { if (context.current()) read(true); }, 2000);
  }

  const tick = (one) => h("input", { type: "checkbox", class: "pick", "aria-label": `Choose ${short(named(one), 80)}`, "data-id": one.id, onchange: (event) => {
    whole = false;
    if (event.target.checked) chosen.add(one.id); else chosen.delete(one.id);
    choose();
  } });
  const every_one = h("input", { type: "checkbox", class: "pick", "aria-label": "Choose every row", disabled: !may, onchange: () => {
    whole = false;
    for (const one of shown) if (every_one.checked) chosen.add(one.id); else chosen.delete(one.id);
    choose();
  } });

  /** Show how many are chosen, and what can be done with them. */
  function choose() {
    for (const box of body.querySelectorAll(".pick")) box.checked = whole || chosen.has(Number(box.dataset.id));
    every_one.checked = shown.length > 0 && shown.every((one) => whole || chosen.has(one.id));
    const many = whole ? total : chosen.size;
    bar.hidden = !many;
    if (!many) return;
    const more = !whole && every_one.checked && total > shown.length;
    fill(bar, h("strong", {}, `${count(many)} chosen`),
      more ? h("button", { type: "button", class: "quiet", onclick: () => { whole = true; choose(); } }, `choose all ${count(total)}`) : null,
      ...[["Pause", { changes: { paused: true } }], ["Resume", { changes: { paused: false } }]].map(([name, change]) => act(name, () => edit(change, `${name}d`))),
      act("Poll soon", () => does("/api/v1/hints", {}, "hinted", "due now")),
      act("Tag", () => ask("Tags to add, or to take away with a dash before them", "news, -old", (text) => {
        const all = words(text);
        return edit({ add_tags: all.filter((one) => !one.startsWith("-")), remove_tags: all.filter((one) => one.startsWith("-")).map((one) => one.slice(1)).filter(Boolean) }, "Tagged");
      })),
      act("Weigh", () => ask("Weight", "1", (text) => edit({ changes: { weight: Number(text) } }, "Weighed"), "number")),
      act("Remove", removal), act("Choose none", () => { none(); choose(); }));
  }
  const none = () => { chosen.clear(); whole = false; };
  const act = (name, work) => h("button", { type: "button", class: "quiet", onclick: work }, name);
  const which = () => (whole ? { search: asked.search || "id>0" } : { sources: [...chosen] });
  const edit = (more, said) => does("/api/v1/edits", more, "edited", said.toLowerCase());
  async function does(path, more, counted, said) {
    try {
      const found = await send("POST", path, { ...which(), ...more });
      note(`${count(found[counted])} ${found[counted] === 1 ? "source" : "sources"} ${said}.`);
      none();
    } catch (error) { note(error.message, true); }
    if (context.current()) await read();
  }
  /** One more word is needed: asked in the bar itself. */
  function ask(name, like, work, type = "text") {
    const input = h("input", { id: "asked", type, placeholder: like, required: true, ...(type === "number" ? { min: 0, step: "any" } : {}) });
    fill(bar, h("form", { class: "controls", onsubmit: (event) => { event.preventDefault(); work(input.value); } },
      h("label", { for: "asked" }, name), input, h("button", { type: "submit" }, "Apply"), act("Back", choose)));
    input.focus();
  }
  async function removal() {
    let ids = [...chosen];
    if (whole) {
      try { ids = await all(asked.search || "id>0"); } catch (error) { note(error.message, true); return; }
    }
    none();
    remove(ids, () => { if (context.current()) read(); });
  }

  // What is shown is in the address: it can be kept, sent and gone back to.
  const where = () => {
    const kept = new URLSearchParams(Object.entries(asked).filter(([name, value]) => value && !["limit", "offset"].includes(name)));
    if (asked.offset) kept.set("page", String(asked.offset / SIZE + 1));
    return `#/sources?${kept}`;
  };
  const change = (more) => {
    // What is not seen any more is not meant any more.
    if (more.search !== undefined && more.search !== asked.search) none();
    Object.assign(asked, { offset: 0 }, more);
    history.replaceState(null, "", where());
    for (const [i, [, key]] of COLUMNS.entries()) heads[i].setAttribute("aria-sort", key !== asked.sort ? "none" : asked.down ? "descending" : "ascending");
    named_now();
    return read();
  };
  const heads = COLUMNS.map(([name, key, down]) => h("th", { scope: "col", "aria-sort": "none", class: BRIEF.has(key) ? "brief" : "" }, h("button", {
    type: "button", class: "sort", onclick: () => change({ sort: key, down: asked.sort === key ? !asked.down : down }) }, name)));
  const search = h("input", { id: "text", type: "search", value: asked.search, placeholder: "tag:news failing fresh<0.5", autocomplete: "off", "aria-describedby": "help" });
  search.addEventListener("input", calmly(() => change({ search: search.value }), 40));
  const state = h("select", { id: "state" });
  state.addEventListener("change", () => {
    const one = saved.find((kept) => `saved:${kept.name}` === state.value);
    search.value = one ? one.search : state.value;
    change(one ? { search: one.search, sort: one.sort, down: one.down } : { search: state.value });
  });
  /** What is looked for under a name, if it has one. */
  function named_now() {
    const one = saved.find((kept) => kept.search === asked.search && kept.sort === asked.sort && kept.down === asked.down);
    const plain = STATES.some(([value]) => value === asked.search);
    state.value = one ? `saved:${one.name}` : plain ? asked.search : "other";
    keep.hidden = !may || Boolean(one) || !asked.search;
    drop.hidden = !may || !one;
  }
  function list() {
    fill(state, STATES.map(([value, name]) => h("option", { value }, name)), h("option", { value: "other", hidden: true }, "what is typed"),
      saved.length ? h("optgroup", { label: "Saved" }, saved.map((one) => h("option", { value: `saved:${one.name}` }, one.name))) : null);
    named_now();
  }
  async function save(next) {
    try { saved = (await send("PUT", "/api/v1/searches", { searches: next })).searches; } catch (error) { note(error.message, true); }
    list();
  }
  const keep = h("button", { type: "button", class: "quiet", hidden: true, onclick: () => {
    const input = h("input", { id: "naming", type: "text", required: true, maxlength: 100 });
    const form = h("form", { class: "controls", onsubmit: async (event) => {
      event.preventDefault();
      form.remove();
      await save([...saved.filter((one) => one.name !== input.value), { name: input.value, search: asked.search, sort: asked.sort, down: asked.down }]);
    } }, h("label", { for: "naming" }, "Name"), input, h("button", { type: "submit" }, "Save"));
    keep.after(form);
    input.focus();
  } }, "Save this view");
  const drop = h("button", { type: "button", class: "quiet", hidden: true, onclick: () => save(saved.filter((one) => `saved:${one.name}` !== state.value)) }, "Forget this view");
  const turn = (by) => { asked.offset = Math.max(0, asked.offset + by); history.pushState(null, "", where()); read(); };
  const page = h("span", { class: "muted" });
  const before = h("button", { type: "button", class: "quiet", onclick: () => turn(-SIZE) }, "Before");
  const after = h("button", { type: "button", class: "quiet", onclick: () => turn(SIZE) }, "Next");

  fill(place, h("h1", {}, "Sources"),
    h("div", { class: "controls" }, h("label", { for: "text" }, "Search"), search, h("label", { for: "state" }, "Show"), state, keep, drop,
      may ? h("a", { class: "button", href: "#/add" }, "Add sources") : null),
    h("details", { class: "help" }, h("summary", {}, "What can be typed"), h("p", { id: "help", class: "muted" }, HELP)), bar,
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Sources" },
      h("table", { class: "stack fleet" }, h("caption", { class: "hidden" }, "Sources and how fresh their copies are"),
        h("thead", {}, h("tr", {}, may ? h("td", { class: "picks" }, every_one) : null, heads)), body)),
    h("div", { class: "controls" }, before, page, after, told));
  // Nothing moves when the first rows come: what stands around them comes with them.
  body.parentElement.tHead.hidden = told.parentElement.hidden = true;
  list();
  get("/api/v1/searches").then((found) => { saved = found.searches; if (context.current()) list(); }).catch(() => {});
  await change({ offset: asked.offset });
  const timer = setInterval(() => { if (!document.hidden && !bar.contains(document.activeElement)) read(true); }, 10000);
  context.ending(() => { clearInterval(timer); stop?.abort(); });
}

/** The ids of all that a search finds, some at a time. */
async function all(search) {
  const ids = [];
  for (let after = 0; after !== null;) {
    const found = await get("/api/v1/sources", { search, after, limit: 1000 });
    ids.push(...found.sources.map((one) => one.id));
    after = found.after;
    if (ids.length > 10000) throw new Error("More than 10,000 sources are not removed from here: use `unstale remove`.");
  }
  return ids;
}

const named = (one) => one.title || one.address;

function row(one, box) {
  const cells = [one.checked_at ? percent(one.fresh, 0) : "–", one.checked_at ? span(one.age) : "–",
    one.change_rate && one.checked_at ? [every(one.change_rate), h("small", {}, ` (${span(1 / one.change_rate_high)} – ${span(1 / one.change_rate_low)})`)] : "–",
    one.interval === null ? one.waits_for : span(one.interval), one.paused ? "–" : due(one.due_at), ago(one.changed_at), count(one.weight),
    one.failures ? h("span", { class: "bad" }, count(one.failures)) : "0"];
  const tags = [one.options.tags ?? []].flat();
  const state = one.paused ? "paused" : one.failures ? "failing" : !one.checked_at ? "waiting" : one.fresh < 0.5 ? "stale" : "fresh";
  return h("tr", {}, box ? h("td", { class: "picks" }, box) : null,
    h("th", { scope: "row" }, h("span", { class: `state ${state}`, title: state }, h("span", { class: "hidden" }, `${state}: `)), icon(one.id),
      h("a", { href: `#/sources/${one.id}`, title: one.address }, short(named(one))),
      one.title ? h("small", { class: "under" }, short(one.address, 70)) : null,
      tags.length ? h("span", { class: "tags" }, tags.map((tag) => h("a", { class: "chip", href: `#/sources?${new URLSearchParams({ search: term("tag", tag) })}` }, short(tag, 40)))) : null),
    cells.map((cell, i) => h("td", { "data-name": COLUMNS[i + 1][0], class: BRIEF.has(COLUMNS[i + 1][1]) || (one.failures && COLUMNS[i + 1][1] === "failures") ? "brief" : "" }, cell)));
}
