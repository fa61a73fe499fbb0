// One source: why it is polled as it is, what polls taught, its versions, and what can be done.

import { get, operator, send } from "../api.js";
import { chart } from "../chart.js";
import { address, fill, h, icon, note, table, term, tile } from "../dom.js";
import { ago, bytes, count, due, every, many, percent, seconds, short, span } from "../format.js";
import { live } from "../live.js";
import { editing } from "./editing.js";
import { versions } from "./versions.js";

const ROWS = { changed: 3, unchanged: 2, failed: 1 };

const wants = (context) => context.query.has("new");

const FEED = /(rss|atom|feed)\+?(xml|json)/i;

export async function source(place, context) {
  const at = `/api/v1/sources/${context.id}`;
  const parts = Object.fromEntries(["head", "polls", "belief", "versions", "does"].map((name) => [name, h("section", { class: "card" })]));
  parts.acts = h("div", {});
  const drawn = {};
  let token = null;
  context.ending(() => Object.values(drawn).forEach((down) => down()));

  async function follow() {
    try { await send("PATCH", at, { kind: "feed" }); } catch (error) { note(error.message, true); return; }
    note("It is a feed from its next poll on.");
    source(place, context);
  }
  async function head() {
    const [one, why] = await Promise.all([get(at), get(`${at}/explain`)]);
    if (!context.current()) return null;
    const tags = [one.options.tags ?? []].flat();
    if (one.title) document.title = `${one.title.slice(0, 100)} · Unstale`;
    fill(parts.head, one.title ? h("h2", { class: "title" }, one.title) : null, h("p", { class: "address" }, icon(one.id), address(one.address)),
      tags.length ? h("p", { class: "tags" }, tags.map((tag) => h("a", { class: "chip", href: `#/sources?${new URLSearchParams({ search: term("tag", tag) })}` }, short(tag, 40)))) : null, h("p", { class: "why" }, why.sentence), why.costs ? h("p", { class: "why" }, why.costs) : null, why.copying ? h("p", { class: "why" }, why.copying) : null,
      one.kind === "http" && FEED.test(one.copy?.media_type ?? "") ? h("p", {}, "This is a feed. ", operator() ? h("button", { type: "button", class: "quiet", onclick: follow }, "Follow its entries") : "As one it would be compared by its entries.") : null,
      operator() ? h("p", {}, h("a", { href: `#/news?${new URLSearchParams({ of: one.address })}` }, "Tell somebody of its changes")) : null,
      h("dl", { class: "tiles" },
        tile("fresh now", one.checked_at ? percent(one.fresh) : "–", `expected age ${one.checked_at ? span(one.age) : "unknown"}`),
        tile("changes", one.change_rate && one.checked_at ? every(one.change_rate) : "unknown", one.change_rate && one.checked_at ? `90 % sure: every ${span(1 / one.change_rate_high)} to ${span(1 / one.change_rate_low)}` : ""),
        tile("polled", one.paused ? "paused" : why.interval ? `every ${span(why.interval)}` : "–", one.paused ? "" : `next poll ${due(one.due_at)}`),
        tile("checked", ago(one.checked_at), `last change found ${ago(one.changed_at)}`),
        tile("weight", count(one.weight), `cost ${count(one.cost)}${why.surcharge > 1 ? `, ${count(why.surcharge)} times that for its host's cap` : ""}`),
        tile("failures", count(one.failures), "since the last answer")));
    return one;
  }

  async function polls() {
    const { observations } = await get(`${at}/observations`, { limit: 300 });
    if (!context.current()) return;
    const moved = observations[0]?.token !== token;
    token = observations[0]?.token ?? null;
    if (!moved && drawn.polls) return;
    drawn.polls?.();
    const all = observations.toReversed();
    const box = h("div", { class: "chart" });
    const failure = observations.find((one) => one.reason);
    fill(parts.polls, h("h2", {}, "Polls and changes"), all.length ? box : h("p", { class: "muted" }, "It has not been polled yet."),
      failure ? h("p", { class: "muted" }, `Last failure, ${ago(failure.polled_at)}: ${failure.reason}`) : null,
      h("details", {}, h("summary", {}, "The newest polls"), table("The newest polls", ["Time", "Answer", "After", "Received", "Reason"],
        observations.slice(0, 30).map((one) => [new Date(one.polled_at).toLocaleString(), one.answer, span(one.elapsed), bytes(one.received), one.reason]))));
    if (!all.length) return;
    const row = (answer) => all.map((one) => (one.answer === answer ? ROWS[answer] : null));
    // The series' name says what it is: beside it stands whether it was that.
    const shown = () => "yes";
    const name = (value) => Object.keys(ROWS).find((one) => ROWS[one] === value) ?? "";
    drawn.polls = chart(box, all.map((one) => seconds(one.polled_at)), [
      { name: "changed", values: row("changed"), colour: "good", points: 8, shown }, { name: "unchanged", values: row("unchanged"), colour: "accent", points: 6, shown },
      { name: "failed", values: row("failed"), colour: "bad", points: 8, shown }],
    { y: name, yTicks: [1, 2, 3], range: [0.5, 3.5], height: 150, said: `The last ${many(all.length, "poll")}: ${all.filter((one) => one.answer === "changed").length} found a change, ${all.filter((one) => one.answer === "failed").length} failed.` });
    await belief();
  }

  async function belief() {
    const { points } = await get(`/dashboard/sources/${context.id}/belief`);
    if (!context.current()) return;
    drawn.belief?.();
    const box = h("div", { class: "chart" });
    fill(parts.belief, h("h2", {}, "What was believed of its change rate"), points.length > 1 ? box : h("p", { class: "muted" }, "After a few polls it can be said how often it changes."));
    if (points.length < 2) return;
    const daily = (name) => points.map((one) => 86400 * one[name]);
    drawn.belief = chart(box, points.map((one) => seconds(one.at)), [
      { name: "at most (95 %)", values: daily("high"), colour: "line", band: true }, { name: "at least (95 %)", values: daily("low"), colour: "line" },
      { name: "changes a day", values: daily("change_rate"), colour: "accent" }],
    { y: (value) => count(value, 2), logY: true, height: 190, said: `The believed change rate after each poll, now ${count(daily("change_rate").at(-1))} changes a day.` });
  }

  const one = await head();
  if (one === null) return;
  const order = wants(context) ? ["versions", "head", "acts", "polls", "belief", "does"] : ["head", "acts", "versions", "polls", "belief", "does"];
  let { version } = one;
  async function renew() {
    const now = await head();
    await polls();
    // A new version is shown by itself, unless somebody is comparing others.
    if (now && now.version !== version && !parts.versions.querySelector("h3") && !parts.versions.contains(document.activeElement)) {
      version = now.version;
      await versions(parts.versions, context.id, one.kind, context);
    }
  }
  const judged = editing(parts.does, parts.acts, one, context, () => source(place, context), renew);
  const wanted = { old: context.query.get("old"), new: context.query.get("new") };
  // Everything is there before it is shown, so that nothing moves; charts fit themselves into their room then.
  await Promise.all([polls(), versions(parts.versions, context.id, one.kind, context, wanted), judged]);
  if (!context.current()) return;
  fill(place, h("h1", {}, `Source ${context.id}`), order.map((name) => parts[name]));
  const onStatus = ({ detail }) => {
    if (detail.polls === undefined || document.hidden || Date.now() - seen < 5000) return;
    seen = Date.now();
    renew().catch(() => {});
  };
  let seen = Date.now();
  live.addEventListener("status", onStatus);
  context.ending(() => live.removeEventListener("status", onStatus));
}
