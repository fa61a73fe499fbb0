// Removing with a way back: what is to go is gone from sight at once, and from the store when nobody has said otherwise
// for a while. Who leaves the page has said nothing.

import { send } from "./api.js";
import { note } from "./dom.js";
import { count } from "./format.js";

const WAIT = 8000;
/** Sources that are no longer shown, by id. */
export const gone = new Set();
const waiting = new Set();

/** Remove these ids, unless it is undone; `changed` is told whenever what is to be seen is another. */
export function remove(ids, changed = () => {}) {
  for (const id of ids) gone.add(id);
  changed();
  const back = () => { for (const id of ids) gone.delete(id); changed(); };
  const job = { timer: 0, finish: null };
  job.finish = async (keepalive = false) => {
    waiting.delete(job);
    clearTimeout(job.timer);
    try {
      await send("POST", "/api/v1/removals", { sources: ids }, { keepalive });
    } catch (error) { note(error.message, true); back(); return; }
    changed();
  };
  job.timer = setTimeout(job.finish, WAIT);
  waiting.add(job);
  note(ids.length === 1 ? "Removed, with its copies." : `Removed ${count(ids.length)} sources, with their copies.`, false, { name: "Undo", does: () => {
    if (!waiting.delete(job)) return;
    clearTimeout(job.timer);
    back();
    note(ids.length === 1 ? "It is back." : "They are back.");
  } }, WAIT);
}

addEventListener("pagehide", () => { for (const job of waiting) job.finish(true); });
