// What changed lately; who is told of it, set up and tried here; and where a reader of feeds finds it.

import { get, operator, send } from "../api.js";
import { field, fill, h, lines, note, table, words } from "../dom.js";
import { ago, many, short, zone } from "../format.js";

const AT = "/dashboard/receivers";
const SIGNS = { "+": "added", "-": "taken" };

export async function news(place, context) {
  const [told, found] = await Promise.all([get(AT), get("/changes.json", { limit: 50 })]);
  if (!context.current()) return;
  // What came since somebody looked here last, in this browser.
  let since = 0;
  try {
    since = Number(localStorage.getItem("news-seen")) || 0;
    if (found.items.length) localStorage.setItem("news-seen", String(Math.max(...found.items.map((one) => Date.parse(one.date_published)))));
  } catch { /* Then nothing is marked. */ }
  const fresh = found.items.filter((one) => since && Date.parse(one.date_published) > since);
  const changes = found.items.map((one) => {
    const [, source, version] = /source:(\d+):version:(\d+)$/.exec(one.id);
    return [[fresh.includes(one) ? [h("span", { class: "pill good" }, "new"), " "] : null, h("a", { href: `#/sources/${source}?new=${version}` }, short(one.title, 90)), one.content_text ? h("p", { class: "lines" }, (one.content_text === "…" ? "What changed is long, or the version before is not kept." : short(one.content_text, 400)).split("\n").map((line) => h("span", { class: SIGNS[line[0]] ?? "" }, `${line}\n`))) : null], ago(one.date_published), one.tags.join(", ")];
  });
  const who = h("section", { class: "card" });
  fill(place, h("h1", {}, "News"),
    h("section", { class: "card" }, h("h2", {}, "What changed lately"), since ? h("p", { class: "muted" }, fresh.length ? `${many(fresh.length, "change")} since you looked last${fresh.length === found.items.length ? ", or more" : ""}.` : "Nothing since you looked last.") : null, table("Changes", ["Source", "When", "Tags"], changes, "Nothing has changed since its first copy."),
      h("p", { class: "muted" }, "Any feed reader can follow this: ", h("a", { href: "/changes.atom", target: "_blank", rel: "noopener noreferrer" }, "/changes.atom"), ", or of one tag with ?tag=NAME.")), who);
  receivers(who, told, context);
}

/** Who is told: those of the settings file, and those that are set up here. */
function receivers(place, { receivers: given, own }, context) {
  const may = operator();
  const test = (i) => async (event) => {
    event.target.disabled = true;
    try {
      const { reason } = await send("POST", AT, { receiver: i });
      note(reason ? `It was not taken: ${reason}` : "It was taken.", Boolean(reason));
    } catch (error) { note(error.message, true); }
    event.target.disabled = false;
  };
  const again = async (work, text) => {
    try {
      const all = await work();
      note(text);
      context.query.delete("of");
      if (context.current()) receivers(place, all, context);
    } catch (error) { note(error.message, true); }
  };
  const act = (name, does) => h("button", { type: "button", class: "quiet", disabled: !may, onclick: does }, name);
  const forms = h("div", {});
  const edit = (one, sources = []) => { fill(forms, form(one, sources, again, () => fill(forms))); forms.querySelector("input").focus(); };
  const rows = [
    ...given.map((name, i) => [name, "settings file", h("span", { class: "controls" }, act("Send a test", test(i)))]),
    ...own.map((one, i) => [one.name, about(one), h("span", { class: "controls" }, act("Send a test", test(given.length + i)), act("Edit", () => edit(one)),
      act("Remove", () => again(() => send("POST", `${AT}/removals`, { name: one.name }), "It is told no more.")))])];
  fill(place, h("h2", {}, "Who is told"), table("Receivers", ["Receiver", "How", ""], rows, "Nobody yet."),
    h("div", { class: "controls actions" }, h("button", { type: "button", id: "tell", disabled: !may, onclick: () => edit(null) }, "Tell somebody")), forms,
    h("p", { class: "muted" }, "Mail, chat and push go by an address of Apprise, like ntfy:// or mailto://. Commands and files are for the settings file alone."));
  if (may && context.query.has("of")) edit(null, [context.query.get("of")]);
}

const about = (one) => [one.via === "notify" ? "message" : "webhook", one.address === "sealed" ? "address sealed" : one.address, [...one.tags, ...one.sources].length ? `of ${short([...one.tags, ...one.sources].join(", "), 90)}` : "of everything",
  one.hours.length ? one.hours.join("; ") : "at once", one.first ? "first copies too" : "", one.title || one.text ? "in own words" : ""].filter(Boolean).join(" · ");

/** The form of one receiver; without `one` of a new one, of these sources if there are any. */
function form(one, of, again, away) {
  const input = (id, value, placeholder = "") => h("input", { id, type: "text", value, placeholder, autocomplete: "off" });
  const name = h("input", { id: "r-name", type: "text", value: one?.name ?? "", required: true, maxlength: 80, readonly: Boolean(one) });
  const via = h("select", { id: "r-via" }, h("option", { value: "notify", selected: one?.via !== "webhook" }, "message (Apprise)"), h("option", { value: "webhook", selected: one?.via === "webhook" }, "webhook"));
  const address = h("input", { id: "r-address", type: "password", value: "", placeholder: one ? "as it is" : "$CHAT", required: !one, autocomplete: "off", spellcheck: "false" });
  const tags = input("r-tags", (one?.tags ?? []).join(", "), "all");
  const sources = h("textarea", { id: "r-sources", rows: 2, spellcheck: "false", placeholder: "all" }, (one?.sources ?? of).join("\n"));
  const hours = h("textarea", { id: "r-hours", rows: 2, spellcheck: "false", placeholder: "at once, or like 08:00-08:10 Mon Europe/Berlin" }, (one?.hours ?? []).join("\n"));
  // What most people want is one press away, in their own zone.
  const usual = [["at once", ""], ["daily at 8", `08:00-08:10 ${zone}`], ["Mondays at 8", `08:00-08:10 Mon ${zone}`], ["not at night", `07:00-22:00 ${zone}`]];
  const when = field("Hours", hours, "When it is told; what comes at other times waits and is told together then.");
  when.append(h("span", { class: "controls" }, usual.map(([label, value]) => h("button", { type: "button", class: "quiet", onclick: () => { hours.value = value; } }, label))));
  const first = h("input", { id: "r-first", type: "checkbox", checked: Boolean(one?.first) });
  const title = input("r-title", one?.title ?? "", "{{ title }} changed");
  const text = h("textarea", { id: "r-text", rows: 3, spellcheck: "false", placeholder: "{% for c in changes %}{{ c.title }} {{ c.link }}\n{% endfor %}" }, one?.text ?? "");
  const save = (event) => {
    event.preventDefault();
    const said = { name: name.value.trim(), via: via.value, tags: words(tags.value), sources: lines(sources.value), hours: lines(hours.value), first: first.checked, title: title.value.trim(), text: text.value.trim() };
    again(() => send("PUT", AT, { ...said, ...(address.value.trim() ? { address: address.value.trim() } : {}) }), "Saved: it is told of every change from now on.");
  };
  return h("form", { class: "form", onsubmit: save, "aria-label": one ? `Edit ${one.name}` : "Tell somebody" }, h("div", { class: "grid" },
    field("Name", name, "For you."), field("Way", via), field("Address", address, "The name of an environment variable, like $CHAT; or the address itself, which is sealed with the server's key and never shown."),
    field("Tags", tags, "Only of sources with one of these; with commas between them."),
    field("Sources", sources, "Only of the sources with these addresses, besides those with a tag above; one a line."), when,
    field("Title", title, "A template; empty: as ever."), field("Text", text, "A template with title, address, link, tags, lines, time, changes and count."),
    h("span", { class: "check" }, first, h("label", { for: "r-first" }, "first copies too"))),
  h("div", { class: "controls" }, h("button", { type: "submit" }, "Save"), h("button", { type: "button", class: "quiet", onclick: away }, "Cancel")));
}
