"use strict";
// A token under the pointer, or focused, shows its own hits alone.
for (const article of document.querySelectorAll(".why-case")) {
  const only = token => {
    article.classList.toggle("why-one", token !== null);
    for (const move of article.querySelectorAll(".why-move")) move.classList.toggle("why-on", move.dataset.token === token);
  };
  for (const token of article.querySelectorAll(".why-token")) {
    for (const name of ["pointerenter", "focus"]) token.addEventListener(name, () => only(token.dataset.token));
    for (const name of ["pointerleave", "blur"]) token.addEventListener(name, () => only(null));
  }
}
const form = document.querySelector(".why-filter");
if (form) {
  const cases = [...document.querySelectorAll(".why-case")];
  const shown = () => cases.filter(each => !each.hidden);
  const filter = () => {
    const asked = new FormData(form);
    const words = (asked.get("words") || "").toLowerCase();
    for (const each of cases) {
      each.hidden = ["set", "language", "which"].some(key => asked.get(key) && each.dataset[key] !== asked.get(key))
        || !each.textContent.toLowerCase().includes(words);
    }
    form.querySelector("output").textContent = `${shown().length} shown`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", event => event.preventDefault());
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select")) return;
    if (event.key === "/") {
      event.preventDefault();
      form.elements.words.focus();
    }
    const step = { j: 1, k: -1 }[event.key];
    if (!step) return;
    const there = shown(), now = there.findIndex(each => `#${each.id}` === location.hash);
    const next = there[now < 0 ? (step > 0 ? 0 : there.length - 1) : now + step];
    if (next) {
      location.hash = next.id;
      next.focus({ preventScroll: true });
    }
  });
}
