// Who is told of changes, tried with one button; and where a reader of feeds finds them.

import { get, operator, send } from "../api.js";
import { fill, h, note, table } from "../dom.js";
import { ago, short } from "../format.js";

const HOW = `[[on_change]]
notify = "$CHAT"                        # mail, chat, push: any address of Apprise, in the environment
tags = ["news"]                         # only of these; all without
hours = ["08:00-08:10 Mon Europe/Berlin"]  # told then, together; at once without`;

export async function news(place, context) {
  const [{ receivers }, found] = await Promise.all([get("/dashboard/receivers"), get("/changes.json", { limit: 50 })]);
  if (!context.current()) return;
  const may = operator();
  const test = (i) => async (event) => {
    event.target.disabled = true;
    try {
      const { reason } = await send("POST", "/dashboard/receivers", { receiver: i });
      note(reason ? `It was not taken: ${reason}` : "It was taken.", Boolean(reason));
    } catch (error) { note(error.message, true); }
    event.target.disabled = false;
  };
  const changes = found.items.map((one) => {
    const [, source, version] = /source:(\d+):version:(\d+)$/.exec(one.id);
    return [[h("a", { href: `#/sources/${source}?new=${version}` }, short(one.title, 90)), one.content_text ? h("p", { class: "lines" }, short(one.content_text, 400)) : null], ago(one.date_published), one.tags.join(", ")];
  });
  fill(place, h("h1", {}, "News"),
    h("section", { class: "card" }, h("h2", {}, "What changed lately"), table("Changes", ["Source", "When", "Tags"], changes, "Nothing has changed since its first copy."),
      h("p", { class: "muted" }, "Any feed reader can follow this: ", h("a", { href: "/changes.atom", target: "_blank", rel: "noopener noreferrer" }, "/changes.atom"), ", or of one tag with ?tag=NAME.")),
    h("section", { class: "card" }, h("h2", {}, "Who is told"), table("Receivers", ["Receiver", ""], receivers.map((name, i) => [name,
      h("span", { class: "controls" }, h("button", { type: "button", class: "quiet", disabled: !may, onclick: test(i) }, "Send a test"))]), "Nobody yet."),
    h("p", { class: "muted" }, "Receivers are in unstale.toml, secrets in the environment. First copies are not told unless a receiver asks for them. Like this:"), h("pre", { class: "difference", tabindex: "0", role: "region", "aria-label": "How receivers are written" }, HOW)));
}
