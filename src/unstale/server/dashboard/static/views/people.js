// Who is logged in, which programs may ask, and who changed what: for operators.

import { get, operator, send } from "../api.js";
import { field, fill, h, long, note, table } from "../dom.js";
import { ago, due } from "../format.js";

// Edits that are read at a time.
const PART = 50;

export async function people(place, context) {
  if (!operator()) { fill(place, h("h1", {}, "People"), h("p", {}, "Log in as operator to see who is logged in.")); return; }
  const [{ sessions }, programs, log] = await Promise.all([get("/dashboard/people"), get("/dashboard/tokens"), get("/api/v1/audit", { limit: PART })]);
  if (!context.current()) return;
  const end = (mark) => async () => {
    try { await send("POST", "/dashboard/people/end", { mark }); note("That login has ended."); } catch (error) { note(error.message, true); }
    if (context.current()) await people(place, context);
  };
  fill(place, h("h1", {}, "People"),
    h("section", { class: "card" }, h("h2", {}, "Logged in"), table("Logins", ["Who", "Role", "From", "Since", ""], sessions.map((one) => [one.name, one.role, one.place || "unknown", ago(one.since),
      one.own ? "this is you" : h("button", { type: "button", class: "quiet", onclick: end(one.mark) }, "End")]), "Nobody has logged in.")),
    tokens(programs, context),
    changed(log, context));
}

/** The log of edits, with a button for older ones. */
function changed(log, context) {
  const place = h("section", { class: "card" });
  const draw = (all, more) => fill(place, h("h2", {}, "Who changed what"),
    table("What was changed", ["When", "Who", "What"], all.map((one) => [h("time", { datetime: one.at, title: new Date(one.at).toLocaleString() }, ago(one.at)), one.who, long(one.what)]), "Nothing was changed yet."),
    h("p", { class: "muted" }, "By command, in the browser and over the API; the store keeps the newest 10,000."),
    more ? h("button", { type: "button", class: "quiet", onclick: async () => {
      try {
        const found = await get("/api/v1/audit", { limit: PART, before: more });
        if (context.current()) draw([...all, ...found.edits], found.more);
      } catch (error) { note(error.message, true); }
    } }, "Older ones") : null);
  draw(log.edits, log.more);
  return place;
}

/** Tokens for programs: what they may do, and a form for a new one, which is shown once. */
function tokens(given, context) {
  const place = h("section", { class: "card" });
  const told = h("div", { role: "status" });
  const draw = ({ tokens: all, scopes }) => {
    const name = h("input", { id: "k-name", type: "text", required: true, maxlength: 80, placeholder: "grafana" });
    const days = h("input", { id: "k-days", type: "number", min: 1, max: 3650, value: 90, required: true });
    const boxes = Object.keys(scopes).map((one) => [one, h("input", { id: `k-${one}`, type: "checkbox", checked: one === "read" })]);
    const act = async (work) => { try { const got = await work(); if (context.current()) draw(got); return got; } catch (error) { note(error.message, true); return null; } };
    const make = async (event) => {
      event.preventDefault();
      const got = await act(() => send("POST", "/dashboard/tokens", { name: name.value.trim(), days: Number(days.value), scopes: boxes.filter(([, box]) => box.checked).map(([one]) => one) }));
      if (got) fill(told, h("p", {}, "Copy it now, it is not shown again:"), h("pre", { class: "difference", tabindex: "0", role: "region", "aria-label": "The new token" }, got.token));
    };
    fill(place, h("h2", {}, "Tokens for programs"), table("Tokens", ["Name", "May", "Since", "Ends", ""], all.map((one) => [one.name, one.scopes.join(", "), ago(one.since), due(one.until),
      h("button", { type: "button", class: "quiet", onclick: () => { fill(told); act(() => send("POST", "/dashboard/tokens/removals", { mark: one.mark })); } }, `End ${one.name}`)]), "None yet."), told,
    h("form", { class: "form", onsubmit: make, "aria-label": "A new token" }, h("div", { class: "grid" }, field("Name", name), field("Lasts for days", days),
      h("fieldset", {}, h("legend", {}, "May"), boxes.map(([one, box]) => h("span", { class: "check" }, box, h("label", { for: `k-${one}` }, `${one}: ${scopes[one]}`))))), h("button", { type: "submit" }, "Make a token")));
  };
  draw(given);
  return place;
}
