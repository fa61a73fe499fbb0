// Asking the server. Writes repeat the session's word, so that no other site can make them.

export const session = { role: null, word: "", login: false, logged_in: false, kept: "", icons: false };

export class Refused extends Error {
  constructor(status, detail) { super(detail); this.status = status; }
}

async function answered(response) {
  // Whether somebody is still who he was; a wrong password is no news of that.
  if (response.status === 401 && !response.url.endsWith("/dashboard/login")) dispatchEvent(new Event("stranger"));
  if (response.ok) return response.status === 204 ? null : response.json();
  let detail = `the server answered ${response.status}`;
  try { detail = (await response.json()).detail || detail; } catch { /* Not ours: the number must do. */ }
  throw new Refused(response.status, detail);
}

/** An answer, or one sentence instead of what browsers say when there is none. */
async function asked(path, options) {
  try { return await fetch(path, options); } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer: is it running, and is the network there?");
  }
}

export async function get(path, query = {}, options = {}) {
  const wanted = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "" && value !== false) wanted.set(name, value);
  }
  const text = wanted.toString();
  return answered(await asked(text ? `${path}?${text}` : path, { headers: { accept: "application/json" }, ...options }));
}

export async function send(method, path, body, options = {}) {
  return answered(await asked(path, {
    ...options, method, headers: { "content-type": "application/json", "x-unstale-word": session.word },
    body: body === undefined ? undefined : JSON.stringify(body),
  }));
}

/** Who we are to the server. */
export async function meet() {
  Object.assign(session, await get("/dashboard/session"));
  dispatchEvent(new Event("session"));
  return session;
}

export const operator = () => session.role === "operator";
