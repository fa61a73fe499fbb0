// How it stands: freshness now and over time, what it costs, what was done, what was given up.

import { get } from "../api.js";
import { chart } from "../chart.js";
import { fill, h, table, tile } from "../dom.js";
import { ago, count, due, give, many, percent, seconds, short, span } from "../format.js";
import { live } from "../live.js";

const SPANS = [["1h", "hour"], ["1d", "day"], ["7d", "week"], ["30d", "month"]];

/** Where there is nothing yet: what to do first. */
function begin(stands) {
  const step = (name, text, link, action) => h("li", {}, h("strong", {}, name), h("p", {}, text), h("a", { class: "button", href: link }, action));
  return h("section", { class: "card" }, h("h2", {}, "Begin"), h("p", {}, "There are no sources yet."), h("ol", { class: "steps" },
    step("Add something", "A page, a feed, a file: one address, a list of them, or the export of another program.", "#/add", "Add sources"),
    step("Choose a budget", `All polls together may cost ${count(stands.budget_per_day)} a day. The curve shows what more or less would give.`, "#/budget", "See the curve"),
    step("See the first copies arrive", stands.engine.running ? "The engine runs: each source is polled once, then as often as pays." : "No engine runs yet: start one with: unstale run", "#/sources?sort=id&down=true", "All sources")));
}

// Collections that are shown.
const COLLECTIONS = 20;

export async function overview(place, context) {
  const parts = Object.fromEntries(["hero", "tiles", "curve", "work", "given", "collections", "worst"].map((name) => [name, h("div", {})]));
  let since = "1d";
  let drawn = [];
  let known = [{}, []];
  // How the fleet stands, as every face tells it.
  let stands = null;
  const clear = () => { drawn.forEach((down) => down()); drawn = []; };
  context.ending(clear);

  const course = () => get("/api/v1/prices", { since, points: 400 });
  async function history(found) {
    const { prices } = found ?? await course();
    if (!context.current()) return;
    const last = prices.at(-1);
    known = [last ?? {}, prices];
    now(...known);
    clear();
    if (!last) {
      fill(parts.curve, h("p", { class: "muted" }, "There is nothing to draw yet: the first price is published a minute after the engine starts."));
      fill(parts.work);
      return;
    }
    const at = prices.map((one) => seconds(one.at));
    // Before enough was learned there is no comparison, and nothing to draw of it.
    const low = Math.min(...prices.map((one) => Math.min(one.fresh, one.even ?? one.fresh)));
    const box = (into, title) => { const made = h("div", { class: "chart" }); fill(into, h("h2", {}, title), made); return made; };
    drawn.push(chart(box(parts.curve, "Freshness over time"), at, [
      { name: "Unstale", values: prices.map((one) => one.fresh), colour: "good" },
      { name: "all polled equally often", values: prices.map((one) => one.even), colour: "muted", dash: [6, 5] },
    ], { y: (value) => percent(value, 0), range: [Math.max(0, Math.floor(10 * low - 0.5) / 10), 1],
      said: `Freshness over the last ${since}: at last ${percent(last.fresh)}${last.even === null ? "" : `, ${percent(last.even)} if all were polled equally often`}.` }));
    // What a point counts was done since the point before it.
    const minutes = at.map((one, i) => (i ? (one - at[i - 1]) / 60 : NaN));
    const rate = (name) => prices.map((one, i) => (minutes[i] > 0 ? one[name] / minutes[i] : null));
    drawn.push(chart(box(parts.work, "Per minute"), at, [
      { name: "polls", values: rate("polls"), colour: "accent" },
      { name: "changes found", values: rate("changed"), colour: "good" },
      { name: "failures", values: rate("failed"), colour: "bad" },
    ], { y: (value) => count(value, 2), range: (_, __, most) => [0, Math.max(most, 1)], height: 180,
      said: `Polls, changes and failures per minute over the last ${since}.` }));
  }

  function now(last, prices) {
    if (!stands) return;
    const engine = stands.engine;
    const sum = (name) => prices.reduce((total, one) => total + one[name], 0);
    const answered = sum("polls") - sum("failed");
    const counts = stands.sources;
    const begun = stands.first_round;
    for (const name of ["curve", "work", "given", "worst"]) parts[name].parentNode.hidden = !counts.total;
    choose.hidden = !counts.total;
    if (!counts.total) { fill(parts.hero, begin(stands)); fill(parts.tiles); return; }
    const none = counts.total === counts.paused ? "All sources are paused." : "";
    const even = stands.freshness_even === null ? "mostly a guess until sources were polled twice" : `${percent(stands.freshness_even)} if all were polled equally often for the same budget${give(stands.freshness_even_error)}`;
    const round = begun ? `First round: ${count(begun.done)} of ${many(begun.of, "source")} polled, about ${span(begun.left)} left${engine.running ? "" : " once an engine runs"}.` : "";
    fill(parts.hero, h("div", { class: "hero" }, none ? h("p", {}, none) : [
      h("p", { class: "big" }, percent(stands.freshness)), h("p", {}, `of the copies ${stands.summed_at === stands.at ? "are believed fresh now" : `were believed fresh ${ago(stands.summed_at)}`}, by weight${give(stands.freshness_error)}`, h("br"), h("span", { class: "muted" }, even),
        round ? [h("br"), h("span", {}, round)] : null,
        stands.copying.map((one) => [h("br"), h("a", { href: `#/sources/${one.id}` }, short(one.address)), ` is ${one.sentence}.`]))]));
    fill(parts.tiles, h("dl", { class: "tiles" },
      tile("budget", `${count(stands.budget_per_day)}\u00a0/\u00a0day`, `${stands.budget.why}; ${count(stands.spent_day)} spent in the last day${stands.budget.waiting ? `. ${stands.budget.waiting}` : ""}`),
      tile("price", count(stands.price), "staleness that one more poll removes"),
      tile("measured", answered > 0 ? percent(1 - sum("changed") / answered) : "–", "of answered polls found their copy still fresh"),
      tile("polls", count(stands.totals.polls), `${many(stands.totals.changed - stands.totals.first, "change")}, ${many(stands.totals.failed, "failure")}, ${many(stands.totals.requests, "request")}`),
      tile("last answer", ago(engine.last_answer_at), engine.running === false ? "no engine is running" : `${many(engine.in_flight, "poll")} under way`)));
  }

  async function fleet(found) {
    stands = found ?? await get("/api/v1/status");
    if (!context.current()) return;
    now(...known);
    const counts = stands.sources;
    const more = stands.collections.length - COLLECTIONS;
    parts.collections.parentNode.hidden = !stands.collections.length;
    fill(parts.collections, stands.collections.length ? [h("h2", {}, "Collections"), h("p", { class: "muted" }, `One look at each tells about many sources.${more > 0 ? ` ${count(more)} more are told by unstale signals.` : ""}`),
      table("Collections", ["Collection", "State", "Members", "True signals", "Changes signalled", "Late by", "Listed every", "Polls saved a day"], stands.collections.slice(0, COLLECTIONS).map((one) => [
        one.id < 0 ? `${one.listing} ${one.address}` : h("a", { href: `#/sources/${one.id}` }, one.address), one.state, count(one.members), percent(one.precision, 0), percent(one.silence === null ? null : 1 - one.silence, 0), one.late ? span(one.late) : "", span(one.interval), one.saved === null ? "" : count(Math.round(one.saved))]))] : []);
    fill(parts.worst, h("h2", {}, "Most in need"), h("p", { class: "muted" }, `${many(counts.total, "source")}: ${count(counts.failing)} failing, ${count(counts.paused)} paused, ${count(counts.never_answered)} never answered. Expected age of a copy: ${span(stands.age)}.`),
      table("Sources most in need", ["Source", "Fresh", "Age", "Checked", "Next poll"], stands.worst.slice(0, 8).map((one) => [
        h("a", { href: `#/sources/${one.id}`, title: one.address }, short(one.options?.title || one.address)), percent(one.fresh, 0), span(one.age), ago(one.checked_at), due(one.due_at)]), "No sources yet."));
  }

  async function given() {
    const plan = await get("/api/v1/plan");
    if (!context.current()) return;
    if (!plan.sources) { fill(parts.given, h("p", { class: "muted" }, "Nothing is given up: there is nothing to poll yet.")); return; }
    const said = h("p", {});
    fill(parts.given, h("h2", {}, "Given up"), said);
    if (!plan.abandoned) { said.textContent = "No source is abandoned: at today's price polling each of them pays."; return; }
    said.textContent = `${count(plan.abandoned)} of ${many(plan.sources, "source")} ${plan.abandoned === 1 ? "is" : "are"} abandoned: at today's price no poll of them pays, they are only looked at now and then. `;
    for (const factor of [1.5, 2, 4, 8, 16]) {
      const more = await get("/api/v1/plan", { budget_per_day: factor * plan.budget_per_day });
      if (!context.current()) return;
      if (more.abandoned <= 0.5 * plan.abandoned || factor === 16) {
        const back = plan.abandoned - more.abandoned;
        said.append(back > 0 ? `Taking back ${back === plan.abandoned ? "all" : count(back)} of them would cost ${count(more.budget_per_day - plan.budget_per_day)} more a day and raise freshness from ${percent(plan.freshness)} to ${percent(more.freshness)}. ` : "Even sixteen times the budget would not take one back. ",
          h("a", { href: "#/budget" }, "See the curve"));
        return;
      }
    }
  }

  const choose = h("div", { class: "segments", role: "group", "aria-label": "Time shown" }, SPANS.map(([value, name]) => h("button", {
    type: "button", "aria-pressed": String(value === since), onclick: (event) => {
      since = value;
      for (const one of event.target.parentNode.children) one.setAttribute("aria-pressed", String(one === event.target));
      history().catch(() => {});
    } }, name)));
  // Everything that has a place is there before it is shown, so that nothing moves; what takes longer comes last.
  const first = await Promise.all([course(), get("/api/v1/status", { known: true })]);
  if (!context.current()) return;
  fill(place, h("h1", {}, "Overview"), parts.hero, choose, parts.tiles, h("section", { class: "card" }, parts.curve),
    h("section", { class: "card" }, parts.work), h("section", { class: "card" }, parts.collections), h("section", { class: "card" }, parts.worst), h("section", { class: "card" }, parts.given));
  fill(parts.given, h("p", { class: "muted" }, "Asking what another budget would do…"));
  const failed = (into) => (error) => { if (context.current()) fill(into, h("p", { class: "muted" }, error.message)); };
  await fleet(first[1]);
  await history(first[0]);
  given().catch(failed(parts.given));
  const timer = setInterval(() => { if (!document.hidden) history().catch(() => {}); }, 30000);
  // What was known may be from the last visit: it is asked for anew with the first sign of life.
  let told = 0;
  const onStatus = () => { if (!document.hidden && Date.now() - told > 5000) { told = Date.now(); fleet().catch(() => {}); } };
  live.addEventListener("status", onStatus);
  context.ending(() => { clearInterval(timer); live.removeEventListener("status", onStatus); });
}
