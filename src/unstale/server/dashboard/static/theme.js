// Before anything is painted: the theme that was chosen, if one was.
"use strict";
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* Where nothing may be kept, the system decides. */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
