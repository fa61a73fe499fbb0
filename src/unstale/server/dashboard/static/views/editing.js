// What is said of one source, to be changed; what of it counts is tried on its last copies while it is typed.

import { get, operator, send } from "../api.js";
import { calmly, field, fill, h, lines, note, words } from "../dom.js";
import { count, many, parsed, span } from "../format.js";
import { remove } from "../removing.js";
import { marked } from "./difference.js";

/** A length of time as somebody would type it, nothing for none. */
const typed = (length) => (length ? span(length).replace("\u00a0", " ") : "");

const LISTS = [["selectors", "Leave out (CSS)", "Parts of a page that do not count, like .clock, one a line."], ["keep", "Keep only (CSS)", "The only parts of a page that count."],
  ["pointers", "Leave out (JSON)", "Members that do not count, like /meta/time."], ["keep_pointers", "Keep only (JSON)", "The only members that count, like /price."],
  ["xpath", "Keep only (XPath)", "Parts of HTML or XML that count, like //h2/text()."], ["between", "Keep only between", "Two marks a line with => between them, like Begin => End."],
  ["patterns", "Keep only (expression)", "What a regular expression finds, like Price: ([0-9.]+)."], ["drop_patterns", "Leave out (expression)", "What a regular expression finds does not count."]];
const FLAGS = [["whitespace", "spaces"], ["case", "capital letters"], ["digits", "numbers"], ["dates", "dates and times"], ["text", "markup (only text counts)"]];
/** Two marks as one line, and back. */
const shownAs = (name, all) => [all ?? []].flat().length ? (name === "between" ? all.map((pair) => pair.join(" => ")) : [all].flat()).join("\n") : "";
const readAs = (name, text) => (name === "between" ? lines(text).map((one) => one.split(/\s*=>\s*/)) : lines(text));

/** The form of a source into a place, and what else can be done into another. `again` shows the source anew, `renew` only what
 * is told of it, so that what is being typed stays. It is whole when what is returned is done. */
export function editing(place, acts, one, context, again, renew) {
  const at = `/api/v1/sources/${one.id}`;
  const may = operator();
  const input = (id, value, about = "", more = {}) => h("input", { id, type: "text", value, placeholder: about, disabled: !may, ...more });
  const said = one.options.normalise ?? {};
  const boxes = Object.fromEntries([
    ...LISTS.map(([name]) => [name, h("textarea", { id: `n-${name}`, rows: 2, spellcheck: "false", disabled: !may }, shownAs(name, said[name]))]),
    ...FLAGS.map(([name]) => [name, h("input", { id: `n-${name}`, type: "checkbox", checked: said[name] === true, disabled: !may })])]);
  const title = input("title", one.options.title ?? "", one.title.slice(0, 200));
  const tags = input("tags", [one.options.tags ?? []].flat().join(", "), "news, work");
  const weight = input("weight", String(one.weight), "1");
  const shortest = input("shortest", typed(one.min_interval), "no bound");
  const longest = input("longest", typed(one.max_interval), "no bound");
  const counting = () => Object.fromEntries([...LISTS.map(([name]) => [name, readAs(name, boxes[name].value)]).filter(([, all]) => all.length),
    ...FLAGS.map(([name]) => [name, boxes[name].checked]).filter(([, on]) => on)]);

  const when = one.options.triggers ?? {};
  const area = (id, value) => h("textarea", { id, rows: 2, spellcheck: "false", disabled: !may }, (value ?? []).join("\n"));
  const bounds = { appear: area("t-appear", when.appear), vanish: area("t-vanish", when.vanish),
    above: input("t-above", String(when.above ?? ""), "any", { inputmode: "decimal" }), below: input("t-below", String(when.below ?? ""), "any", { inputmode: "decimal" }),
    added: h("input", { id: "t-added", type: "checkbox", checked: when.added === true, disabled: !may }) };
  /** What is asked for, null if nothing is. */
  const asking = () => {
    const all = { appear: lines(bounds.appear.value), vanish: lines(bounds.vanish.value), ...Object.fromEntries(["above", "below"].map((name) => [name, bounds[name].value.trim() === "" ? null : Number(bounds[name].value)])), added: bounds.added.checked };
    const kept = Object.entries(all).filter(([, value]) => value !== null && value !== false && value.length !== 0);
    return kept.length ? Object.fromEntries(kept) : null;
  };

  const tried = h("div", { role: "status" });
  let turn = 0;
  async function trial() {
    const mine = ++turn;
    let got;
    try { got = await send("POST", `/dashboard/sources/${one.id}/trial`, { options: { normalise: counting(), triggers: asking() } }); } catch (error) {
      if (mine === turn) fill(tried, h("p", { class: "bad" }, error.message));
      return;
    }
    if (mine !== turn || !context.current()) return;
    fill(tried, got.copies < 2 ? h("p", { class: "muted" }, got.copies ? "There is one copy yet: this is what would count of it." : "There is no copy yet to try it on.")
      : h("p", { class: got.same ? "good" : "" }, got.same ? "The last two copies are the same then: this would have been no change." : "The last two copies still differ:"),
    !got.same ? marked(got.lines, "What would still differ") : got.counts.length ? h("details", {}, h("summary", {}, "What counts then"), marked(got.counts.map((line) => [" ", line]), "What counts")) : got.copies ? h("p", { class: "bad" }, "Nothing is left that could change.") : null);
  }
  const trying = calmly(trial, 300);
  const counts = h("details", { class: "counts", open: Object.keys(said).length + Object.keys(when).length > 0, ontoggle: (event) => { if (event.target.open && may) trial(); } }, h("summary", {}, "What counts as a change"),
    h("div", { class: "grid", oninput: trying }, LISTS.map(([name, label, about]) => field(label, boxes[name], about)),
      h("fieldset", {}, h("legend", {}, "Does not count"), FLAGS.map(([name, label]) => h("span", { class: "check" }, boxes[name], h("label", { for: `n-${name}` }, label)))),
      h("fieldset", { class: "wide" }, h("legend", {}, "Tell only when"), h("div", { class: "grid" },
        field("these words appear", bounds.appear, "One a line. With words or bounds nothing else counts."), field("these words vanish", bounds.vanish, "One a line."),
        field("the number rises above", bounds.above, "The first number of what counts."), field("the number falls below", bounds.below),
        h("span", { class: "check" }, bounds.added, h("label", { for: "t-added" }, "lines were added"))))), tried);

  const save = async (event) => {
    event.preventDefault();
    const [least, most] = [shortest, longest].map((box) => parsed(box.value));
    const heavy = Number(weight.value);
    if (!(heavy >= 0) || weight.value.trim() === "" || Number.isNaN(least) || Number.isNaN(most)) { note("Write the weight as a number and times like 15 min, 2 h or 1 d.", true); return; }
    // Times are shown rounded: what was not touched is not sent back.
    const touched = (box) => box.value !== box.defaultValue;
    const now = counting();
    const all = [...LISTS, ...FLAGS].map(([name]) => [name, now[name] ?? null]).filter(([name, value]) => value !== null || said[name] !== undefined);
    const options = { title: title.value.trim() || null, tags: words(tags.value).length ? words(tags.value) : null,
      ...(all.length ? { normalise: Object.keys(now).length ? Object.fromEntries(all) : null } : {}) };
    // A table is merged with what was said: what is gone is taken away by name.
    const asked = asking();
    if (asked || one.options.triggers) options.triggers = asked && { ...Object.fromEntries(Object.keys(when).map((name) => [name, null])), ...asked };
    for (const name of ["title", "tags"]) if (options[name] === null && one.options[name] === undefined) delete options[name];
    const body = { weight: heavy, ...(touched(shortest) ? { min_interval: least ?? 0 } : {}), ...(touched(longest) ? { max_interval: most } : {}),
      ...(Object.keys(options).length ? { options } : {}) };
    await done(() => send("PATCH", at, body), () => "Saved; the engine takes it up at once.", again);
  };
  /** Do it, show what came of it, and only then say so: who reads the word may type on. */
  async function done(work, said, show = renew) {
    try {
      await work();
      if (context.current()) await show();
      note(said());
    } catch (error) { note(error.message, true); }
  }
  const poll = async (event) => {
    event.target.disabled = true;
    try {
      const found = await send("POST", `${at}/poll?wait=15s`);
      if (context.current()) await renew();
      if (!found.polled) note("It is due now; it will be polled as soon as the budget allows.");
      else note(found.answered ? `Polled: version ${found.version} is what the source has now.` : "Polled, but the source did not answer.", !found.answered);
    } catch (error) { note(error.message, true); }
    event.target.disabled = false;
  };
  const pause = async (event) => {
    const button = event.target;
    await done(async () => {
      await send("PATCH", at, { paused: !one.paused });
      one.paused = !one.paused;
      button.textContent = one.paused ? "Resume" : "Pause";
    }, () => one.paused ? "It is paused: nothing polls it." : "It is polled again.");
  };
  const act = (name, work, more = {}) => h("button", { type: "button", class: "quiet", disabled: !may, onclick: work, ...more }, name);
  const form = h("form", { onsubmit: save }, h("div", { class: "grid" }, field("Title", title), field("Tags", tags, "With commas between them."), field("Weight", weight, "How much its freshness counts."),
    field("Never sooner than", shortest), field("At least every", longest)), counts, h("button", { type: "submit", disabled: !may }, "Save"));
  fill(acts, h("div", { class: "controls actions", role: "group", "aria-label": "What can be done" },
    act("Poll now", poll, { id: "poll", class: null }),
    act(one.paused ? "Resume" : "Pause", pause),
    act("Hint", () => done(() => send("POST", `${at}/hint`), () => "It may have changed: it is due now.")),
    act("Remove", () => { remove([one.id], () => {}); location.hash = "#/sources"; })));
  fill(place, h("h2", {}, "What is said of it"), form, may ? null : h("p", { class: "muted" }, "Log in as operator to do these."));

  /** A source that changes at nearly every poll is told, with what to do about it. */
  const judged = get(`/dashboard/sources/${one.id}/noise`).then((found) => {
    if (!found.polls || !context.current()) return;
    const offered = found.offer;
    const what = [...(offered.selectors ?? []), ...(offered.pointers ?? []), ...(offered.digits ? ["numbers"] : [])];
    const take = () => {
      for (const [name, value] of Object.entries(offered)) {
        if (value === true) boxes[name].checked = true;
        else boxes[name].value = [...new Set([...lines(boxes[name].value), ...value])].join("\n");
      }
      counts.open = true;
      counts.scrollIntoView({ block: "nearest" });
      trial();
    };
    acts.append(h("div", { class: "hint" }, h("p", {}, `It changed at ${count(found.changed)} of its last ${many(found.polls, "poll")}. If what differs means nothing, leave it out, and the budget goes to what does change.`),
      found.lines.length ? marked(found.lines, "What differed last") : null,
      what.length && may ? h("button", { type: "button", onclick: take }, `Leave out ${what.join(", ")}`) : null));
  }).catch(() => {});
  if (counts.open && may) trial();
  return judged;
}
