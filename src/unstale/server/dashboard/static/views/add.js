// Adding: one address with a look at what it brings, or many at once, pasted or from a file.

import { get, operator, send } from "../api.js";
import { calmly, field, fill, h, lines, note, table, words } from "../dom.js";
import { bytes, count, short } from "../format.js";

const LARGEST = 30 * 2 ** 20;
// Backups and databases of other monitors, and packed lists, are no text.
const BINARY = [[0x50, 0x4b, 3, 4], [0x53, 0x51, 0x4c, 0x69], [0x1f, 0x8b], [0x50, 0x41, 0x52, 0x31]];
// What people write of a site is mostly its name.
const NAME = /^[\w-]+(\.[\w-]+)+(:\d+)?(\/\S*)?$/;

const encoded = (file) => new Promise((done, failed) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
  reader.onerror = () => failed(reader.error);
  reader.readAsDataURL(file);
});

export async function add(place, context) {
  if (!operator()) { fill(place, h("h1", {}, "Add sources"), h("p", {}, "Log in as operator to add sources.")); return; }
  const text = h("textarea", { id: "addresses", rows: 5, spellcheck: "false", autocapitalize: "off", placeholder: "https://example.org/news" });
  const file = h("input", { id: "file", type: "file", accept: ".opml,.xml,.csv,.tsv,.json,.jsonl,.ndjson,.txt,.list,.yaml,.yml,.zip,.db,.gz,.parquet" });
  const tags = h("input", { id: "tags", type: "text", placeholder: "news, work" });
  const title = h("input", { id: "title", type: "text" });
  const told = h("div", { role: "status" });
  const looked = h("div", {});
  const good = h("input", { id: "good", type: "checkbox" });
  const look = h("button", { type: "button", class: "quiet", disabled: true, onclick: () => see(found.first[0].address) }, "See what a poll brings");
  const put = h("button", { type: "submit", disabled: true }, "Add");
  const naming = field("Title", title, "What it is called here; its address if empty.");
  const drawn = h("input", { id: "drawn", type: "checkbox", onchange: () => { kind = drawn.checked ? "browser" : ""; } });
  naming.append(h("span", { class: "check" }, drawn, h("label", { for: "drawn" }, "it needs a browser: drawn before it is kept, ten times as dear")));
  naming.hidden = true;
  // A file as it is, in place of what is typed; what was last found in either; what a look told of the one there is.
  let content = "";
  let packed = false;
  let found = null;
  let kind = "";
  let turn = 0;

  const typed = () => lines(text.value).map((one) => (NAME.test(one.split(/\s/)[0]) ? `https://${one}` : one)).join("\n");
  async function judge() {
    const mine = ++turn;
    const said = content || typed();
    fill(looked);
    kind = drawn.checked ? "browser" : "";
    found = null;
    if (said) {
      try { found = await send("POST", "/api/v1/lists", { content: said, base64: Boolean(content) && packed }); } catch (error) {
        if (mine === turn) { fill(told, h("p", { class: "bad" }, error.message)); ready(); }
        return;
      }
    }
    if (mine !== turn || !context.current()) return;
    tell();
    ready();
  }
  function ready() {
    const one = found?.sources === 1 && !found.bad;
    look.disabled = !one;
    look.hidden = Boolean(found) && !one;
    naming.hidden = !one;
    put.disabled = !found?.sources || (found.bad > 0 && !good.checked);
    put.textContent = found?.sources > 1 ? `Add ${count(found.sources)}` : "Add";
  }
  function tell() {
    if (!found) { fill(told); return; }
    const known = found.sources - found.new;
    const all = found.first.map((one) => [short(one.title || one.address, 90), one.kind, one.tags.join(", "), one.new ? "new" : "listed already"]);
    fill(told, h("p", {}, `${count(found.sources)} ${found.sources === 1 ? "source" : "sources"}: ${count(found.new)} new${known ? `, ${count(known)} listed already` : ""}${found.bad ? `, and ${count(found.bad)} bad ${found.bad === 1 ? "line" : "lines"}` : ""}.`),
      found.unused.length ? h("p", { class: "muted" }, `Not taken over: ${found.unused.join(", ")}.`) : null,
      found.bad ? [h("ul", { class: "bad" }, found.problems.slice(0, 20).map((one) => h("li", {}, `line ${one.line}: ${one.reason}`))),
        found.sources ? h("p", { class: "controls" }, good, h("label", { for: "good" }, "Add the others nevertheless")) : null] : null,
      found.sources > 1 ? h("details", {}, h("summary", {}, "What is in it"), table("Sources in the list", ["Source", "Kind", "Tags", ""], all)) : null);
  }
  async function see(address) {
    fill(looked, h("p", { class: "muted" }, "Looking…"));
    let got;
    try { got = await send("POST", "/dashboard/look", drawn.checked ? { address, kind: "browser" } : { address }); } catch (error) { fill(looked, h("p", { class: "bad" }, error.message)); return; }
    if (!context.current()) return;
    kind = drawn.checked ? "browser" : got.kind;
    if (!title.value) title.value = got.title;
    const instead = (feed) => { content = ""; text.value = feed; title.value = ""; judge().then(() => found && see(feed)); };
    fill(looked, h("section", { class: "card" }, h("h2", {}, got.title || "What a poll brings"),
      got.reason ? h("p", { class: "bad" }, got.reason) : h("p", { class: "muted" }, `${got.kind === "feed" ? "a feed" : got.media_type || "of unknown type"}, ${bytes(got.size)}`),
      got.feeds.length ? [h("p", {}, "It has feeds, which tell of new entries as they come:"), h("ul", { class: "bare" }, got.feeds.map((one) => h("li", {},
        h("button", { type: "button", class: "quiet", onclick: () => instead(one) }, `Take ${short(one, 80)} instead`))))] : null,
      got.entries.length ? h("ul", {}, got.entries.map((one) => h("li", {}, one.title))) : null,
      got.lines.length ? h("pre", { class: "difference", tabindex: "0", role: "region", "aria-label": "How it begins" }, got.lines.map((one) => h("span", {}, `${one}\n`))) : null));
  }
  async function save(event) {
    event.preventDefault();
    put.disabled = true;
    const own = words(tags.value);
    try {
      // A line that says more than an address is read as a list.
      if (found.sources === 1 && !found.bad && (kind || title.value) && !content && !/\s/.test(typed())) {
        const options = { ...(title.value ? { title: title.value } : {}), ...(own.length || found.first[0].tags.length ? { tags: [...found.first[0].tags, ...own] } : {}) };
        const { ids } = await send("POST", "/api/v1/sources?replace=true", [{ address: typed(), ...(kind ? { kind } : {}), options }]);
        note("Added: it is polled as soon as the budget allows.");
        location.hash = `#/sources/${ids[0]}`;
        return;
      }
      const done = await send("POST", "/api/v1/lists", { content: content || typed(), base64: Boolean(content) && packed, add: true, keep_good: good.checked, tags: own });
      note(`Added ${count(done.new)} ${done.new === 1 ? "source" : "sources"}: first copies come as the budget allows.`);
      location.hash = "#/sources?sort=id&down=true";
    } catch (error) {
      note(error.message, true);
      ready();
    }
  }
  text.addEventListener("input", () => { content = ""; file.value = ""; });
  text.addEventListener("input", calmly(judge, 250));
  good.addEventListener("change", ready);
  file.addEventListener("change", async () => {
    const one = file.files[0];
    if (!one) return;
    const head = new Uint8Array(await one.slice(0, 4).arrayBuffer());
    packed = BINARY.some((mark) => mark.every((byte, i) => head[i] === byte));
    if (one.size > (packed ? 0.7 : 1) * LARGEST) { note("That is too large for a browser: use `unstale add --from FILE`.", true); return; }
    text.value = "";
    content = packed ? await encoded(one) : await one.text();
    await judge();
  });
  const known = await get("/api/v1/status").catch(() => null);
  if (!context.current()) return;
  const empty = known && !known.sources.total;
  fill(place, h("h1", {}, "Add sources"),
    empty ? h("p", {}, "Anything that changes elsewhere: pages, feeds, files, answers of an API. Each is polled once, and from then on as often as pays.") : null,
    h("form", { class: "card form", onsubmit: save },
      field("Addresses, one a line", text, "A line may say more, like https://example.org weight=3 max=1d."),
      field("Or a file", file, "OPML of miniflux, FreshRSS or another reader, CSV, JSON lines, a sitemap; the backup of changedetection.io, urls.yaml of urlwatch, kuma.db or the backup of Uptime Kuma."),
      field("Tags", tags, "With commas between them."), naming, told,
      h("div", { class: "controls" }, put, look)), looked);
  text.focus();
}
