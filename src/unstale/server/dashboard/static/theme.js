// Before anything is painted: the theme and the density that were chosen, if they were.
"use strict";
(() => {
  let chosen = null;
  let dense = null;
  try { [chosen, dense] = ["theme", "density"].map((name) => localStorage.getItem(name)); } catch { /* Where nothing may be kept, the system decides. */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  if (dense === "compact") document.documentElement.dataset.density = dense;
})();
