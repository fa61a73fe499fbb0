// Logging in with the token or a password.

import { send, session } from "../api.js";
import { fill, h } from "../dom.js";

export function login(place, entered, back = null) {
  const field = h("input", { id: "secret", type: "password", autocomplete: "current-password", required: true });
  const said = h("p", { class: "bad", role: "alert" });
  const enter = async (event) => {
    event.preventDefault();
    said.textContent = "";
    try {
      await send("POST", "/dashboard/login", { secret: field.value });
      await entered();
    } catch (error) {
      said.textContent = error.message;
      field.select();
    }
  };
  document.title = "Log in · Unstale";
  fill(place, h("form", { class: "card login", onsubmit: enter }, h("h1", {}, "Log in"),
    h("label", { for: "secret" }, "Token or password"), field, h("button", { type: "submit" }, "Log in"), said,
    h("p", { class: "muted" }, session.kept ? `The token is in ${session.kept}, on the machine that serves this.` : "The server printed a link that logs in when it started."),
    back ? h("button", { type: "button", class: "quiet", onclick: back }, "Go on looking without") : null));
  field.focus();
}
