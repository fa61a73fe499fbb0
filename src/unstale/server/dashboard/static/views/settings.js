// What the fleet goes by: settings that can be changed while it runs, and those that a start takes up.

import { get, operator, send } from "../api.js";
import { field, fill, h, long, note, table } from "../dom.js";
import { ago } from "../format.js";

const NAMES = { objective: "Objective", burst: "Burst", first_round: "First polls", windows: "Hours", contracts: "Contracts", hosts: "Hosts" };
const LIKE = { objective: "freshness, age, missed, deadline:1h", burst: "auto, or a number like 20", first_round: "60/min; empty: none", windows: "22:00-06:00 Mon-Fri Europe/Berlin; empty: always", contracts: "orders: 1h; news: 1d 95%; empty: none", hosts: "shop.example: 5s; api.example: 1s 4" };
const SAID = { default: "the default", settings: "as the settings file says", api: "said over the API or here", command: "said by command", option: "said by command" };

const why = (one) => `${SAID[one.by] ?? one.by}${one.set_here && one.since ? `, ${ago(one.since)}` : ""}`;

export async function settings(place, context) {
  const draw = ({ settings: all }) => {
    const live = all.filter((one) => one.live);
    const fixed = all.filter((one) => !one.live);
    fill(place, h("h1", {}, "Settings"),
      h("p", { class: "muted" }, "What is changed here counts within seconds, and outlasts a restart; the settings file has the word again when it says something new. The budget has ", h("a", { href: "#/budget" }, "its own page"), ", and so have ", h("a", { href: "#/news" }, "those who are told"), "."),
      h("section", { class: "card" }, h("h2", {}, "While it runs"), operator() ? live.map(form) : [readable(live), h("p", { class: "muted" }, "Log in as operator to change them.")]),
      h("section", { class: "card" }, h("h2", {}, "At a start"), h("p", { class: "muted" }, "These, and everything else in unstale.toml, are taken up when the engine is started again."), readable(fixed)));
  };
  const readable = (some) => table("Settings", ["Setting", "Value", "Why", "Meaning"], some.map((one) => [h("span", { class: "tag" }, one.name), one.value || "empty", why(one), long(one.meaning)]));
  const form = (one) => {
    const input = h("input", { id: `s-${one.name}`, type: "text", value: one.value, maxlength: 1000, placeholder: LIKE[one.name], "aria-describedby": `w-${one.name}` });
    const say = async (value) => {
      try {
        const found = await send("PUT", "/api/v1/settings", { name: one.name, value });
        note(`${NAMES[one.name] ?? one.name}: saved, the engine goes by it within seconds.`);
        if (context.current()) draw(found);
      } catch (error) { note(error.message, true); input.focus(); }
    };
    const save = h("button", { type: "submit", disabled: true, "aria-label": `Save ${one.name}` }, "Save");
    input.addEventListener("input", () => { save.disabled = input.value.trim() === one.value; });
    return h("form", { class: "setting", onsubmit: (event) => { event.preventDefault(); say(input.value.trim()); } },
      field(NAMES[one.name] ?? one.name, input), save,
      one.set_here ? h("button", { type: "button", class: "quiet", onclick: () => say(null) }, "Back to the settings file") : null,
      h("small", { id: `w-${one.name}`, class: "muted" }, `${one.meaning} Now ${one.value ? `“${one.value}”` : "empty"}, ${why(one)}.`));
  };
  const found = await get("/api/v1/settings");
  if (context.current()) draw(found);
}
