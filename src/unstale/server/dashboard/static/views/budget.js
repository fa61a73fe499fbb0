// What another budget would do: the curve, a slider, and a look before it is applied.

import { get, operator, send } from "../api.js";
import { chart } from "../chart.js";
import { calmly, fill, h, note, table } from "../dom.js";
import { count, many, percent, span } from "../format.js";

// Powers of two of today's budget that the curve is drawn at, those nearby first.
const STEPS = [0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1.5, -1.5];
const NAMES = { p5: "5 % are polled within", p25: "25 %", p50: "half", p75: "75 %", p95: "95 %" };

export async function budget(place, context) {
  const held = await get("/api/v1/budget");
  const today = await get("/api/v1/plan", { budget_per_day: held.budget_per_day });
  if (!context.current()) return;
  if (!today.sources) {
    fill(place, h("h1", {}, "Budget"), h("p", {}, `The budget is ${many(held.budget_per_day, "poll")} a day, ${held.why}.`),
      h("section", { class: "card" }, h("h2", {}, "The curve comes with the first sources"),
        h("p", { class: "muted" }, "What another budget would do can be told once there is something to poll."), h("p", {}, h("a", { class: "button", href: "#/add" }, "Add sources"))));
    return;
  }
  const points = new Map([[0, today]]);
  let wanted = today;
  let take = () => {};
  context.ending(() => take());

  const box = h("div", { class: "chart" });
  const preview = h("div", { "aria-live": "polite" });
  const slider = h("input", { id: "slider", type: "range", min: "-3", max: "3", step: "0.05", value: "0", "aria-describedby": "hint" });
  const exact = h("input", { id: "exact", type: "number", min: "0.001", step: "any", value: String(Number(held.budget_per_day.toPrecision(4))) });
  const apply = h("button", { type: "button", disabled: true, onclick: () => put(wanted.budget_per_day) }, "Apply");
  const back = h("button", { type: "button", class: "quiet", hidden: !held.set_here, onclick: () => put(null) }, "Back to the settings' budget");

  function curve() {
    take();
    const all = new Map([...points.values(), wanted].map((one) => [one.budget_per_day, one]));
    const found = [...all.values()].sort((a, b) => a.budget_per_day - b.budget_per_day);
    const only = (one) => found.map((other) => (other.budget_per_day === one.budget_per_day ? other.freshness : null));
    take = chart(box, found.map((one) => one.budget_per_day), [
      { name: "freshness", values: found.map((one) => one.freshness), colour: "accent" },
      { name: "today", values: only(today), colour: "good", points: 12 },
      ...(wanted === today ? [] : [{ name: "wanted", values: only(wanted), colour: "warn", points: 12 }]),
    ], { time: false, logX: true, xName: "polls a day", x: (value) => count(value, 2), y: (value) => percent(value, 0), height: 260, at: found.findIndex((one) => one.budget_per_day === wanted.budget_per_day),
      said: `Freshness against budget: today ${many(today.budget_per_day, "poll")} a day give ${percent(today.freshness)}.` });
  }

  function compare() {
    const rows = [["budget", (one) => `${count(one.budget_per_day)}\u00a0/\u00a0day`], ["freshness", (one) => percent(one.freshness)],
      ["expected age", (one) => span(one.age)], ["price", (one) => count(one.price)], ["abandoned", (one) => `${count(one.abandoned)} of ${count(one.sources)}`],
      ...Object.entries(NAMES).map(([name, title]) => [title, (one) => span(one.intervals[name])])];
    fill(preview, table("Today and then", ["", "today", "then"], rows.map(([name, tell]) => [name, tell(today), tell(wanted)])));
    apply.disabled = !operator() || wanted === today;
  }

  async function look(perDay) {
    apply.disabled = true;
    try {
      const found = await get("/api/v1/plan", { budget_per_day: perDay });
      if (!context.current() || Number(exact.value) !== perDay) return;
      wanted = found;
      curve();
      compare();
    } catch (error) { note(error.message, true); }
  }

  async function put(perDay) {
    try {
      const now = await send("PUT", "/api/v1/budget", { budget_per_day: perDay });
      note(`The budget is ${many(now.budget_per_day, "poll")} a day now; the engine plans anew.`);
      if (context.current()) await budget(place, context);
    } catch (error) { note(error.message, true); }
  }

  const later = calmly(look, 200);
  slider.addEventListener("input", () => {
    exact.value = String(Number((held.budget_per_day * 2 ** Number(slider.value)).toPrecision(4)));
    slider.setAttribute("aria-valuetext", `${many(Number(exact.value), "poll")} a day`);
    later(Number(exact.value));
  });
  exact.addEventListener("input", () => {
    const perDay = Number(exact.value);
    if (!(perDay > 0)) return;
    slider.value = String(Math.log2(perDay / held.budget_per_day));
    later(perDay);
  });

  fill(place, h("h1", {}, "Budget"),
    h("p", { class: "muted" }, "More budget makes copies fresher, each poll a little less than the one before. Drag to see what another budget would do under the present beliefs; nothing happens before you apply it."),
    h("p", {}, `The budget is ${many(held.budget_per_day, "poll")} a day, ${held.why}.${held.waiting ? ` ${held.waiting}.` : ""}`),
    h("section", { class: "card" }, box,
      h("div", { class: "controls" }, h("label", { for: "slider" }, "Budget"), slider, h("label", { for: "exact", id: "hint" }, "polls a day"), exact, apply, back),
      operator() ? null : h("p", { class: "muted" }, "Log in as operator to apply a budget.")),
    h("section", { class: "card" }, h("h2", {}, "Today and then"), preview));
  curve();
  compare();
  for (const step of STEPS.slice(1)) {
    const point = await get("/api/v1/plan", { budget_per_day: held.budget_per_day * 2 ** step });
    if (!context.current()) return;
    points.set(step, point);
    curve();
  }
}
