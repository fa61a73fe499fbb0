// What goes on, as the server tells it each second: `status` and `changed` events of this target.
//
// A browser has few connections to one server, and a stream keeps one: all tabs share the stream of one of them, which
// holds a lock as long as it lives and tells the others. Tabs that nobody sees give it up and hear nothing. Where there
// are no locks (plain HTTP from another machine), each tab that is seen has its own.

export const live = new EventTarget();
live.status = null;
const channel = new BroadcastChannel("unstale");
let stream = null;
let heard = 0;
let stop = null;

function hear(name, detail) {
  if (name !== "lost") heard = Date.now();
  if (name === "status") live.status = detail;
  live.dispatchEvent(new CustomEvent(name, { detail }));
}

function open() {
  stream = new EventSource("/api/v1/events");
  const tell = (name, detail) => { hear(name, detail); channel.postMessage({ name, detail }); };
  for (const name of ["status", "changed"]) stream.addEventListener(name, (event) => tell(name, JSON.parse(event.data)));
  stream.onerror = () => {
    tell("lost", null);
    // A refusal ends the stream for good; anything else the browser tries again by itself.
    if (stream?.readyState === EventSource.CLOSED) { rest(); setTimeout(listen, 5000); }
  };
}

function rest() {
  stop?.abort();
  stop = null;
  stream?.close();
  stream = null;
}

/** Hear what goes on, through this tab's stream or another's. */
export function listen() {
  rest();
  if (document.hidden) return;
  const mine = stop = new AbortController();
  if (!navigator.locks) { open(); return; }
  navigator.locks.request("unstale", { signal: mine.signal }, () => new Promise((done) => {
    if (mine.signal.aborted) { done(); return; }
    mine.signal.addEventListener("abort", done);
    open();
  })).catch(() => { /* It was given up before it was had. */ });
}

channel.onmessage = ({ data }) => { if (!stream && !document.hidden) hear(data.name, data.detail); };
document.addEventListener("visibilitychange", () => { heard = 0; listen(); });
addEventListener("pagehide", rest);
addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
setInterval(() => { if (heard && Date.now() - heard > 8000) live.dispatchEvent(new CustomEvent("lost")); }, 2000);
