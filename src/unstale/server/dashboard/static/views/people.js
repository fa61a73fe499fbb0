// Who is logged in, and what was changed lately: for operators.

import { get, operator, send } from "../api.js";
import { fill, h, note, table } from "../dom.js";
import { ago } from "../format.js";

export async function people(place, context) {
  if (!operator()) { fill(place, h("h1", {}, "People"), h("p", {}, "Log in as operator to see who is logged in.")); return; }
  const { sessions, done } = await get("/dashboard/people");
  if (!context.current()) return;
  const end = (mark) => async () => {
    try { await send("POST", "/dashboard/people/end", { mark }); note("That login has ended."); } catch (error) { note(error.message, true); }
    if (context.current()) await people(place, context);
  };
  fill(place, h("h1", {}, "People"),
    h("section", { class: "card" }, h("h2", {}, "Logged in"), table("Logins", ["Who", "Role", "From", "Since", ""], sessions.map((one) => [one.name, one.role, one.place || "unknown", ago(one.since),
      one.own ? "this is you" : h("button", { type: "button", class: "quiet", onclick: end(one.mark) }, "End")]), "Nobody has logged in.")),
    h("section", { class: "card" }, h("h2", {}, "Changed lately"), table("What was changed", ["When", "Who", "What"], done.map((one) => [ago(one.at), one.who, one.what]), "Nothing was changed since the server started."),
      h("p", { class: "muted" }, "Since the server started; with --log-json everything is in its log.")));
}
