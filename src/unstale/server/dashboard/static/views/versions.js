// The versions of a copy: each by itself, any two beside each other, and the entries of a feed.

import { get } from "../api.js";
import { address, fill, h, table } from "../dom.js";
import { ago, bytes, many, moment, seconds } from "../format.js";
import { difference } from "./difference.js";

const PAGES = /^(text\/html|application\/xhtml\+xml|image\/svg\+xml)\s*(;|$)/i;
/** Versions that are shown at once, and entries that are read at a time. */
const NEWEST = 8;
const ENTRIES = 25;
const FORMS = { text: "text", structure: "structure", rows: "rows", entries: "entries", source: "as it is" };
const LAYOUT = "layout of differences";

const sides = () => { try { return localStorage.getItem(LAYOUT) === "sides"; } catch { return false; } };

/** Into a place; `wanted` names two versions that are to be seen at once. */
export async function versions(place, id, kind, context, wanted = {}) {
  const { versions: all } = await get(`/api/v1/sources/${id}/versions`);
  if (!context.current()) return;
  const shown = h("div", { "aria-live": "polite" });
  const numbers = all.map((one) => one.version);
  const asked = { old: 0, new: 0, form: "" };

  async function compare(old, now, form = "") {
    Object.assign(asked, { old, new: now, form });
    fill(shown, h("p", { class: "muted" }, "Comparing…"));
    try {
      const found = await get(`/dashboard/sources/${id}/difference`, { old: old || "", new: now, form });
      if (context.current()) draw(found);
    } catch (error) { fill(shown, h("p", { class: "bad" }, error.message)); }
  }
  function draw(found) {
    const pick = (name, label, value) => {
      const box = h("select", { id: `v-${name}` }, all.map((one) => h("option", { value: one.version, selected: one.version === value }, `${one.version} · ${moment(seconds(one.taken_at))}`)));
      box.addEventListener("change", () => compare(name === "old" ? Number(box.value) : asked.old, name === "new" ? Number(box.value) : asked.new, asked.form));
      return [h("label", { for: `v-${name}` }, label), box];
    };
    const at = numbers.indexOf(found.new);
    const step = (by, name) => {
      const [now, old] = [numbers[at + by], numbers[at + by + 1]];
      return h("button", { type: "button", class: "quiet", disabled: at < 0 || now === undefined || old === undefined, onclick: () => compare(old, now, asked.form) }, name);
    };
    const forms = found.forms.length > 1 ? h("div", { class: "segments", role: "group", "aria-label": "Compared by" }, found.forms.map((form) => h("button", { type: "button", "aria-pressed": String(form === found.form), onclick: () => compare(asked.old, asked.new, form) }, FORMS[form]))) : null;
    const layout = h("div", { class: "segments", role: "group", "aria-label": "Layout" }, [["", "inline"], ["sides", "side by side"]].map(([value, name]) => h("button", { type: "button", "aria-pressed": String(sides() === Boolean(value)), onclick: () => {
      try { localStorage.setItem(LAYOUT, value); } catch { /* Then it stays as it is. */ }
      draw(found);
    } }, name)));
    fill(shown, h("h3", {}, found.old ? `From version ${found.old} to ${found.new}` : `Version ${found.new}`),
      found.old ? h("div", { class: "controls" }, pick("old", "From", found.old), pick("new", "to", found.new), step(1, "Change before"), step(-1, "Next change")) : null,
      h("div", { class: "controls" }, forms, found.old ? layout : null), difference(found, sides()));
  }
  const framed = (version) => fill(shown, h("h3", {}, `Version ${version} as a page`),
    h("p", { class: "muted" }, "Nothing of it runs, and nothing is asked for: pictures, styles and links that are elsewhere do not work here."),
    h("iframe", { class: "page", sandbox: "", referrerpolicy: "no-referrer", title: `Version ${version} as a page`, src: `/dashboard/sources/${id}/frame?version=${version}` }));
  const picture = (version, old = 0) => h("img", { class: "picture", alt: old ? `What differs between versions ${old} and ${version}, in red` : `Version ${version} as it was drawn`, src: `/dashboard/sources/${id}/picture?version=${version}${old ? `&old=${old}` : ""}` });
  const pictured = (version, old) => fill(shown, h("h3", {}, old ? `Pictures of versions ${old} and ${version}` : `Version ${version} as it was drawn`),
    h("div", { class: "pictures" }, (old ? [["Before", picture(old)], ["After", picture(version)], ["What differs", picture(version, old)]] : [["", picture(version)]]).map(([name, one]) => h("figure", {}, name ? h("figcaption", {}, name) : null, one))));
  const button = (name, work) => h("button", { type: "button", class: "quiet", onclick: work }, name);
  const rows = all.slice(0, 50).map((one, i) => [
    String(one.version), ago(one.taken_at), one.media_type || "unknown", bytes(one.size), h("span", { class: "controls" },
      all[i + 1] ? button(`what changed since ${all[i + 1].version}`, () => compare(all[i + 1].version, one.version)) : null,
      button("as text", () => compare(0, one.version)),
      kind === "browser" ? button("as drawn", () => pictured(one.version, all[i + 1]?.version ?? 0)) : null,
      PAGES.test(one.media_type) ? button("as page", () => framed(one.version)) : null,
      h("a", { href: `/copies/${id}?version=${one.version}`, target: "_blank", rel: "noopener noreferrer" }, `file ${one.version}`)),
  ]);
  const heads = ["Version", "Taken", "Type", "Size", "Look"];
  const older = rows.length > NEWEST ? h("details", {}, h("summary", {}, many(rows.length - NEWEST, "older version")), table("Older versions", heads, rows.slice(NEWEST))) : null;
  const feed = h("div");
  fill(place, feed, h("h2", {}, "Versions of the copy"), table("Versions", heads, rows.slice(0, NEWEST), "No copy is kept yet."), older, shown);
  const to = Number(wanted.new) || 0;
  const from = Number(wanted.old) || numbers[numbers.indexOf(to) + 1] || 0;
  if (to && numbers.includes(to)) await compare(from, to);
  else if (to) fill(shown, h("p", { class: "muted" }, `Version ${to} is not kept any more: of each source the newest ${numbers.length || "few"} are.`));
  if (kind === "feed" && all.length) await entries(feed, id, context);
}

async function entries(place, id, context) {
  const ask = (before) => get(`/api/v1/sources/${id}/entries`, before ? { limit: ENTRIES, before } : { limit: ENTRIES });
  let got = await ask(0);
  if (!context.current() || !got.entries.length) return;
  const shown = [];
  const holder = h("div");
  const row = (one) => [one.link ? address(one.link, one.title) : one.title, one.time || "–", ago(one.first_seen), one.there ? "still there" : ago(one.last_seen),
    one.edits ? `${one.edits === 1 ? "once" : many(one.edits, "time")}, ${ago(one.edited_at)}` : "–"];
  const more = h("button", { type: "button", class: "quiet", onclick: async () => {
    more.disabled = true;
    try { got = await ask(got.before); } finally { more.disabled = false; }
    draw();
  } }, "Older entries");
  const draw = () => {
    shown.push(...got.entries);
    fill(holder, table("Entries", ["Entry", "From", "First seen", "Last seen", "Edited"], shown.map(row)), got.before ? more : null);
  };
  draw();
  fill(place, h("h2", {}, "Entries"), h("p", { class: "muted" }, `${many(got.total, "entry", "entries")}, also those that the feed has dropped.`), holder);
}
