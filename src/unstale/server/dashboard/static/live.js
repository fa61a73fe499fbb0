// What goes on, as the server tells it each second: `status` and `changed` events of this target.

export const live = new EventTarget();
live.status = null;
let stream = null;
let heard = 0;

export function listen() {
  stream?.close();
  stream = new EventSource("/api/v1/events");
  for (const name of ["status", "changed"]) {
    stream.addEventListener(name, (event) => {
      heard = Date.now();
      const detail = JSON.parse(event.data);
      if (name === "status") live.status = detail;
      live.dispatchEvent(new CustomEvent(name, { detail }));
    });
  }
  stream.onerror = () => {
    live.dispatchEvent(new CustomEvent("lost"));
    // A refusal ends the stream for good; anything else the browser tries again by itself.
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  };
}

setInterval(() => { if (heard && Date.now() - heard > 8000) live.dispatchEvent(new CustomEvent("lost")); }, 2000);
