// One source: why it is polled as it is, what polls taught, its versions, and what can be done.

import { get, operator, send } from "../api.js";
import { chart } from "../chart.js";
import { address, fill, h, note, table, tile } from "../dom.js";
import { ago, bytes, count, due, every, parsed, percent, seconds, span } from "../format.js";
import { live } from "../live.js";

const PAGES = /^(text\/html|application\/xhtml\+xml|image\/svg\+xml)\s*(;|$)/i;
const ROWS = { changed: 3, unchanged: 2, failed: 1 };

export async function source(place, context) {
  const at = `/api/v1/sources/${context.id}`;
  const parts = Object.fromEntries(["head", "polls", "belief", "versions", "does"].map((name) => [name, h("section", { class: "card" })]));
  const drawn = {};
  let token = null;
  context.ending(() => Object.values(drawn).forEach((down) => down()));

  async function head() {
    const [one, why] = await Promise.all([get(at), get(`${at}/explain`)]);
    if (!context.current()) return null;
    fill(parts.head, h("p", { class: "address" }, address(one.address)), h("p", { class: "why" }, why.sentence),
      h("dl", { class: "tiles" },
        tile("fresh now", percent(one.fresh), `expected age ${one.checked_at ? span(one.age) : "unknown"}`),
        tile("changes", one.change_rate ? every(one.change_rate) : "unknown", one.change_rate ? `90 % sure: every ${span(1 / one.change_rate_high)} to ${span(1 / one.change_rate_low)}` : ""),
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
    const name = (value) => Object.keys(ROWS).find((one) => ROWS[one] === value) ?? "";
    drawn.polls = chart(box, all.map((one) => seconds(one.polled_at)), [
      { name: "changed", values: row("changed"), colour: "good", points: 8 }, { name: "unchanged", values: row("unchanged"), colour: "accent", points: 6 },
      { name: "failed", values: row("failed"), colour: "bad", points: 8 }],
    { y: name, yTicks: [1, 2, 3], range: [0.5, 3.5], height: 150, said: `The last ${all.length} polls: ${all.filter((one) => one.answer === "changed").length} found a change, ${all.filter((one) => one.answer === "failed").length} failed.` });
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

  async function versions() {
    const { versions: all } = await get(`${at}/versions`);
    if (!context.current()) return;
    const shown = h("div", {});
    const compare = async (old, now) => {
      fill(shown, h("p", { class: "muted" }, "Comparing…"));
      try { fill(shown, difference(await get(`/dashboard/sources/${context.id}/difference`, { old: old || "", new: now }))); } catch (error) { fill(shown, h("p", { class: "bad" }, error.message)); }
    };
    const page = (version) => fill(shown, h("h3", {}, `Version ${version} as a page`),
      h("p", { class: "muted" }, "Nothing of it runs, and nothing is asked for: pictures, styles and links that are elsewhere do not work here."),
      h("iframe", { class: "page", sandbox: "", referrerpolicy: "no-referrer", title: `Version ${version} as a page`, src: `/dashboard/sources/${context.id}/frame?version=${version}` }));
    fill(parts.versions, h("h2", {}, "Versions of the copy"), table("Versions", ["Version", "Taken", "Type", "Size", "Look"], all.slice(0, 50).map((one, i) => [
      String(one.version), ago(one.taken_at), one.media_type || "unknown", bytes(one.size), h("span", { class: "controls" },
        all[i + 1] ? h("button", { type: "button", class: "quiet", onclick: () => compare(all[i + 1].version, one.version) }, `what changed since ${all[i + 1].version}`) : null,
        h("button", { type: "button", class: "quiet", onclick: () => compare(0, one.version) }, "as text"),
        PAGES.test(one.media_type) ? h("button", { type: "button", class: "quiet", onclick: () => page(one.version) }, "as page") : null,
        h("a", { href: `/copies/${context.id}?version=${one.version}`, target: "_blank", rel: "noopener noreferrer" }, `file ${one.version}`)),
    ]), "No copy is kept yet."), shown);
  }

  function does(one) {
    const may = operator();
    const again = async (work, said) => {
      try { await work(); note(said); } catch (error) { note(error.message, true); }
      if (context.current()) await source(place, context);
    };
    const edit = (body, said) => again(() => send("PATCH", at, body), said);
    const field = (id, name, value, about) => [h("label", { for: id }, name), h("input", { id, type: "text", value, inputmode: "text", placeholder: about, disabled: !may })];
    const save = (event) => {
      event.preventDefault();
      const weight = Number(form.querySelector("#weight").value);
      const [shortest, longest] = ["#shortest", "#longest"].map((id) => parsed(form.querySelector(id).value));
      if (!(weight >= 0) || Number.isNaN(shortest) || Number.isNaN(longest)) { note("Write the weight as a number and times like 15 min, 2 h or 1 d.", true); return; }
      // Times are shown rounded: what was not touched is not sent back.
      const touched = (id) => form.querySelector(id).value !== form.querySelector(id).defaultValue;
      edit({ weight, ...(touched("#shortest") ? { min_interval: shortest ?? 0 } : {}), ...(touched("#longest") ? { max_interval: longest } : {}) },
        "Saved; the engine takes it up at once.");
    };
    const form = h("form", { class: "controls", onsubmit: save }, field("weight", "Weight", String(one.weight), "1"),
      field("shortest", "Never sooner than", one.min_interval ? span(one.min_interval) : "", "no bound"), field("longest", "At least every", one.max_interval ? span(one.max_interval) : "", "no bound"),
      h("button", { type: "submit", disabled: !may }, "Save"));
    const poll = async () => {
      const found = await send("POST", `${at}/poll?wait=15s`);
      if (!found.polled) note("It is due now; it will be polled as soon as the budget allows.");
      else note(found.answered ? `Polled: version ${found.version} is what the source has now.` : "Polled, but the source did not answer.", !found.answered);
    };
    fill(parts.does, h("h2", {}, "What can be done"), h("div", { class: "controls" },
      h("button", { type: "button", id: "poll", disabled: !may, onclick: async (event) => {
        event.target.disabled = true;
        try { await poll(); } catch (error) { note(error.message, true); }
        if (context.current()) await source(place, context);
      } }, "Poll now"),
      h("button", { type: "button", class: "quiet", disabled: !may, onclick: () => edit({ paused: !one.paused }, one.paused ? "It is polled again." : "It is paused: nothing polls it.") }, one.paused ? "Resume" : "Pause")),
    form, may ? null : h("p", { class: "muted" }, "Log in as operator to do these."));
  }

  const one = await head();
  if (one === null) return;
  fill(place, h("h1", {}, `Source ${context.id}`), ...Object.values(parts));
  does(one);
  await Promise.all([polls(), versions()]);
  const onStatus = ({ detail }) => {
    if (detail.polls === undefined || document.hidden || Date.now() - seen < 5000) return;
    seen = Date.now();
    head().then(polls).catch(() => {});
  };
  let seen = Date.now();
  live.addEventListener("status", onStatus);
  context.ending(() => live.removeEventListener("status", onStatus));
}

function difference(found) {
  const kinds = { "+": "added", "-": "taken", "@": "skip", " ": "same" };
  const words = { "+": "added: ", "-": "taken away: " };
  return h("div", {}, h("h3", {}, found.old ? `From version ${found.old} to ${found.new}` : `Version ${found.new}`),
    found.lines.length ? h("pre", { class: "difference", tabindex: "0", role: "region", "aria-label": "Lines" }, found.lines.map(([kind, line]) => h("span", { class: kinds[kind] },
      words[kind] ? h("span", { class: "hidden" }, words[kind]) : null, `${kind === "@" ? "…" : kind} ${line}\n`))) : h("p", { class: "muted" }, found.same ? "Both versions are the same." : found.cut ? "They differ, but not in the part that is compared: it is long." : "They differ in nothing that can be seen: in how lines end, or in bytes that are no text."),
    found.cut ? h("p", { class: "muted" }, "It is long: what is shown is a part. The whole is in the files.") : null);
}
