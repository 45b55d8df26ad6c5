// On every page: the theme, and plots whose points can be reached by pointer and keyboard.
// Loaded before the page is drawn, so that a chosen theme does not flash. Nothing here is needed to read the site.
"use strict";

document.documentElement.classList.add("js");

const theme = {
  stored() {
    try { return localStorage.getItem("theme"); } catch { return null; } // storage may be forbidden
  },
  dark() {
    return (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "")) === "dark";
  },
  set(name) {
    document.documentElement.dataset.theme = name;
    try { localStorage.setItem("theme", name); } catch { /* it lasts as long as the page */ }
  },
};
if (["light", "dark"].includes(theme.stored())) document.documentElement.dataset.theme = theme.stored();

function startTheme() {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", id: "theme" });
  const name = () => { button.textContent = theme.dark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => { theme.set(theme.dark() ? "light" : "dark"); name(); });
  name();
  document.querySelector("header nav").append(button);
}

// What a line's points say: their titles, whose place the tip takes; or the line's row in the table below the plot, which
// has a figure and what is kept for each budget.
function wordsOf(figure, line, i) {
  const titles = [...line.querySelectorAll("title")];
  if (titles.length) return titles.map((title) => { title.remove(); return title.textContent; });
  const table = figure.nextElementSibling.querySelector("table");
  const text = (cell) => cell.textContent.trim();
  const budgets = [...table.tHead.rows[0].cells].map(text);
  const [name, ...cells] = table.tBodies[0].rows[i].cells;
  return cells.flatMap((cell, at) => (at % 2 || text(cell) === "–" ? [] : [
    `${text(name)} at ${budgets[at + 1]}: ${text(cell)}, ${text(cells[at + 1])} % kept${cell.querySelector("b") ? ", Pareto front" : ""}`,
  ]));
}

// A plot is one stop of the tab key. Arrows go along a line (left, right) and between lines (up, down).
function startPlot(figure) {
  const tip = figure.querySelector(".tip");
  const lines = [...figure.querySelectorAll(".s")].reverse(); // drawn back to front
  const legend = [...figure.querySelectorAll(".legend li")];
  const points = (line) => [...line.querySelectorAll(".p")];
  if (!lines.length) return;
  lines.forEach((line, i) => {
    const words = wordsOf(figure, line, i);
    line.querySelectorAll("use, circle").forEach((point, at) => {
      point.classList.add("p");
      point.setAttribute("aria-label", words[at]);
      point.setAttribute("role", "img");
    });
  });
  const enter = () => { // the tab key comes in at the first line that is shown
    for (const point of lines.flatMap(points)) point.tabIndex = -1;
    const open = lines.find((line) => !line.classList.contains("off"));
    if (open) points(open)[0].tabIndex = 0;
  };
  enter();
  figure.addEventListener("filtered", enter);

  const show = (point) => {
    const line = point.closest(".s");
    figure.classList.add("pointed");
    for (const other of lines) other.classList.toggle("on", other === line);
    tip.textContent = point.getAttribute("aria-label");
    tip.hidden = false;
    const box = figure.getBoundingClientRect();
    const at = point.getBoundingClientRect();
    const left = Math.min(Math.max(0, at.left - box.left + 14), box.width - tip.offsetWidth);
    const above = at.top - box.top - tip.offsetHeight - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above < 0 ? at.bottom - box.top + 8 : above}px`;
  };
  const clear = () => {
    tip.hidden = true;
    figure.classList.remove("pointed");
    for (const line of lines) line.classList.remove("on");
  };
  const move = (point, along, across) => {
    const open = lines.filter((line) => !line.classList.contains("off"));
    const line = point.closest(".s");
    const next = open[Math.min(open.length - 1, Math.max(0, open.indexOf(line) + across))] ?? line;
    const place = points(line).indexOf(point) + along;
    const target = points(next)[Math.min(points(next).length - 1, Math.max(0, place))];
    point.tabIndex = -1;
    target.tabIndex = 0;
    target.focus();
  };
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  figure.addEventListener("pointerover", (event) => {
    const point = event.target.closest(".p");
    if (point) return show(point);
    const item = event.target.closest(".legend li");
    if (!item) return clear();
    figure.classList.add("pointed");
    for (const line of lines) line.classList.toggle("on", line === lines[legend.indexOf(item)]);
  });
  figure.addEventListener("pointerleave", clear);
  figure.addEventListener("focusin", (event) => { const p = event.target.closest(".p"); if (p) show(p); });
  figure.addEventListener("focusout", clear);
  figure.addEventListener("keydown", (event) => {
    const point = event.target.closest(".p");
    if (event.key === "Escape") clear();
    if (!point || !steps[event.key]) return;
    event.preventDefault();
    move(point, ...steps[event.key]);
  });
}

document.addEventListener("DOMContentLoaded", () => {
  startTheme();
  document.querySelectorAll(".plot").forEach(startPlot);
});
