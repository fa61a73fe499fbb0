// The frame: which view is shown, who is logged in, whether the engine runs.

import { meet, send, session } from "./api.js";
import { fill, h, note } from "./dom.js";
import { ago } from "./format.js";
import { listen, live } from "./live.js";
import { add } from "./views/add.js";
import { budget } from "./views/budget.js";
import { events } from "./views/events.js";
import { hosts } from "./views/hosts.js";
import { login } from "./views/login.js";
import { news } from "./views/news.js";
import { overview } from "./views/overview.js";
import { people } from "./views/people.js";
import { replication } from "./views/replication.js";
import { keyboard } from "./keyboard.js";
import { settings } from "./views/settings.js";
import { source } from "./views/source.js";
import { sources } from "./views/sources.js";

const VIEWS = [["", "Overview", overview], ["budget", "Budget", budget], ["sources", "Sources", sources],
  ["add", "Add", add], ["news", "News", news], ["hosts", "Hosts", hosts], ["replication", "Replication", replication], ["events", "Events", events], ["settings", "Settings", settings], ["people", "People", people]];
const place = document.getElementById("view");
let leave = () => {};
let turn = 0;

/** Show what the address names; a view returns what to do when it is left. */
async function show(moved = false) {
  const mine = ++turn;
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, id] = path.split("/");
  const found = VIEWS.find(([one]) => one === name);
  const one = /^\d+$/.test(id ?? "") && name === "sources";
  leave();
  leave = () => {};
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.getAttribute("href") === `#/${name}`) {
      link.setAttribute("aria-current", "page");
      // On a phone the row of views is longer than the screen.
      link.parentNode.scrollTo({ left: link.offsetLeft - link.parentNode.offsetLeft - 40 });
    } else link.removeAttribute("aria-current");
  }
  if (!session.role && session.login) { login(place, enter); return; }
  if (!found) { fill(place, h("h1", {}, "Nothing is here"), h("p", {}, h("a", { href: "#/" }, "Back to the overview"))); return; }
  const title = one ? `Source ${id}` : found[1];
  document.title = `${title} · Unstale`;
  const ending = [];
  const context = { query: new URLSearchParams(query), id: Number(id), current: () => mine === turn, ending: (work) => ending.push(work) };
  leave = () => ending.forEach((work) => work());
  fill(place, h("h1", {}, title), h("p", { class: "muted" }, "Reading the store…"));
  if (moved) place.focus({ preventScroll: true });
  try {
    await (one ? source : found[2])(place, context);
  } catch (error) {
    if (context.current()) fill(place, h("h1", {}, title), h("p", { class: "banner" }, error.message),
      h("p", {}, one ? h("a", { href: "#/sources" }, "Back to all sources") : h("button", { type: "button", class: "quiet", onclick: show }, "Try again")));
  }
}

async function enter() {
  await meet();
  listen();
  show();
}

function frame() {
  fill(document.getElementById("nav"), VIEWS.map(([name, title]) => h("a", { href: `#/${name}` }, title)));
  const theme = document.getElementById("theme");
  const dark = () => (document.documentElement.dataset.theme
    ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const named = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-label", `Use the ${dark() ? "light" : "dark"} theme`); };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("theme", document.documentElement.dataset.theme); } catch { /* Then for this time only. */ }
    named();
    dispatchEvent(new Event("theme"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { named(); dispatchEvent(new Event("theme")); });
  named();
  const density = document.getElementById("density");
  const dense = () => document.documentElement.dataset.density === "compact";
  density.setAttribute("aria-pressed", String(dense()));
  density.addEventListener("click", () => {
    if (dense()) delete document.documentElement.dataset.density;
    else document.documentElement.dataset.density = "compact";
    density.setAttribute("aria-pressed", String(dense()));
    try { localStorage.setItem("density", dense() ? "compact" : ""); } catch { /* Then for this time only. */ }
    // Charts are drawn anew for the room they have now.
    dispatchEvent(new Event("theme"));
  });
  const door = document.getElementById("door");
  door.addEventListener("click", async () => {
    if (!session.logged_in) { login(place, enter, session.role ? () => show() : null); return; }
    await send("POST", "/dashboard/logout");
    await enter();
  });
  addEventListener("session", () => { door.hidden = !session.login; door.textContent = session.logged_in ? "Log out" : "Log in"; });
  // A login that has ended: who may look without one goes on looking.
  addEventListener("stranger", async () => {
    const before = session.role;
    try { await meet(); } catch { return; }
    if (before && !session.role) show();
  });
  addEventListener("hashchange", () => show(true));
  // The way past the navigation must not change what is shown.
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); place.focus(); });
}

function engine() {
  const pill = document.getElementById("engine");
  const banner = document.getElementById("banner");
  const say = (text, kind, why = "") => {
    if (pill.textContent !== text) pill.textContent = text;
    pill.className = `pill ${kind}`;
    if (banner.textContent !== why) banner.textContent = why;
    banner.hidden = !why;
  };
  live.addEventListener("status", ({ detail }) => {
    if (detail.problem) say("trouble", "bad", detail.problem);
    else if (detail.engine.running) say("running", "good");
    else {
      const was = detail.heard_at === null
        ? "No engine is running: nothing is polled, and no source has answered yet."
        : `The engine has stopped: nothing is polled, copies stay as they are. The last source answered ${ago(detail.heard_at)}.`;
      say("stopped", "bad", `${was} Start it with: unstale run`);
    }
  });
  live.addEventListener("lost", () => say("no connection", "bad", "The server does not answer; what is shown may be old."));
}

/** The link that the server printed: its key logs in, once, and is not left in the address. */
async function invited() {
  const found = /^#key=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", "#/");
  try {
    await send("POST", "/dashboard/login", { secret: found[1] });
    note("Logged in: you may change things here.");
  } catch (error) {
    note(error.status === 401 ? "That link was used already or is too old: log in with the token, or start the server anew." : error.message, true);
  }
}

frame();
engine();
keyboard();
try {
  await invited();
  await enter();
} catch (error) {
  note(error.message, true);
}
