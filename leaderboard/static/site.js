// On every page: the theme, files loaded on demand, plots whose points can be reached by pointer and keyboard, downloads.
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

// ---- files of a page that it does not hold itself -------------------------------------------------------------------

// A page in a folder may not fetch a file, but it may run one: such a file hands its content to a function by name.
const loading = new Map();
function load(path) {
  if (!loading.has(path)) {
    loading.set(path, new Promise((done, failed) => {
      const file = document.createElement("script");
      Object.assign(file, { src: document.documentElement.dataset.root + path, onload: done, onerror: () => failed(new Error(`${path} cannot be loaded`)) });
      document.head.append(file);
    }));
  }
  return loading.get(path);
}

function save(content, type, name) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

// A text that a spreadsheet would run as a formula is marked as text. Numbers are never touched.
function csvField(text) {
  const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
const csvText = (rows) => rows.map((row) => row.map((field) => csvField(String(field))).join(",")).join("\r\n") + "\r\n";

function latexText(names, rows, words) { // words: how many columns at the left hold text
  const signs = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--", "−": "$-$" };
  const plain = (text) => String(text).replace(/[\\~^–−#$%&_{}]/g, (sign) => signs[sign] ?? `\\${sign}`);
  const line = (cells) => `  ${cells.map(plain).join(" & ")} \\\\`;
  const columns = names.map((_, i) => (i < words ? "l" : "r")).join("");
  return ["% needs the package booktabs", `\\begin{tabular}{${columns}}`, "  \\toprule", line(names), "  \\midrule", ...rows.map(line), "  \\bottomrule", "\\end{tabular}", ""].join("\n");
}

// ---- plots ----------------------------------------------------------------------------------------------------------

// A plot is one stop of the tab key. Arrows go along a line (left, right) and between lines (up, down).
function startPlot(figure) {
  const tip = figure.querySelector(".tip");
  const drawing = () => [...figure.querySelectorAll("svg")].find((svg) => svg.getClientRects().length);
  const lines = () => [...drawing().querySelectorAll(".s:not(.off)")].reverse(); // drawn back to front
  const points = (line) => [...line.querySelectorAll(".p, circle")];

  const enter = () => {
    for (const point of figure.querySelectorAll(".s circle")) {
      const title = point.querySelector("title"); // the tip takes its place
      if (title) { point.setAttribute("aria-label", title.textContent); title.remove(); }
      point.classList.add("p");
      point.setAttribute("role", "img");
      point.tabIndex = -1;
    }
    for (const svg of figure.querySelectorAll("svg")) { // the tab key comes in at the first line that is shown
      const open = [...svg.querySelectorAll(".s:not(.off)")].at(-1);
      if (open) points(open)[0].tabIndex = 0;
    }
  };
  enter();
  figure.addEventListener("changed", () => { clear(); enter(); });

  const show = (point) => {
    const line = point.closest(".s");
    figure.classList.add("pointed");
    for (const other of figure.querySelectorAll(".s")) other.classList.toggle("on", other === line);
    tip.textContent = point.getAttribute("aria-label");
    tip.hidden = false;
    const box = figure.getBoundingClientRect();
    const at = point.getBoundingClientRect();
    const left = Math.min(Math.max(0, at.left - box.left + 14), box.width - tip.offsetWidth);
    const above = at.top - box.top - tip.offsetHeight - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above < 0 ? at.bottom - box.top + 8 : above}px`;
  };
  function clear() {
    tip.hidden = true;
    figure.classList.remove("pointed");
    for (const line of figure.querySelectorAll(".s.on")) line.classList.remove("on");
  }
  const move = (point, along, across) => {
    const open = lines();
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
    if (point) show(point); else clear();
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
  startPlotTools(figure, drawing);
}

// Other axes, and other boards, are drawings of their own, made when the site was built.
const drawings = {};
function plotArrived(name, text) { drawings[name] = text; }

function startPlotTools(figure, drawing) {
  const tools = figure.querySelector(".plot-tools");
  if (!tools) return;
  tools.hidden = false;
  tools.addEventListener("submit", (event) => event.preventDefault());
  const chosen = (id, otherwise) => tools.querySelector(`#plot-${id}`)?.value ?? otherwise;
  const redraw = async () => {
    const name = `${chosen("view", figure.dataset.view)}.${chosen("x", "bytes")}.${chosen("y", "retention")}`;
    await load(`plot/${name}.js`);
    figure.querySelector(".drawing").innerHTML = drawings[name]; // escaped when it was made
    figure.dispatchEvent(new Event("changed"));
    figure.dispatchEvent(new Event("redrawn"));
  };
  tools.addEventListener("change", ({ target }) => {
    const option = target.id === "plot-view" && target.selectedOptions[0];
    if (option) { // a board may lack some axes
      const able = option.dataset.xs.split(" ");
      const axis = tools.querySelector("#plot-x");
      for (const one of axis.options) one.disabled = !able.includes(one.value);
      if (!able.includes(axis.value)) axis.value = able[0];
    }
    redraw();
  });
  const points = () => [...drawing().querySelectorAll(".s:not(.off)")].reverse().flatMap((line) =>
    [...line.querySelectorAll(".p")].map((point) => [line.dataset.method, ...point.dataset.v.split(",")]));
  const names = () => ["method", "budget", drawing().dataset.x, drawing().dataset.y, "low", "high"];
  const padded = () => points().map((row) => [...row, "", ""].slice(0, 6));
  const get = {
    svg: () => save(standalone(drawing()), "image/svg+xml", "plot.svg"),
    png: async () => save(await picture(drawing()), "image/png", "plot.png"),
    csv: () => save(csvText([names(), ...padded()]), "text/csv", "plot.csv"),
    latex: () => save(latexText(names(), padded(), 1), "text/x-tex", "plot.tex"),
  };
  tools.addEventListener("click", ({ target }) => get[target.dataset.get]?.());
}

// A drawing as a file: what the style sheet says of each part is written into it.
const DRAWN = ["fill", "stroke", "stroke-width", "stroke-linejoin", "stroke-linecap", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const parts = copy.querySelectorAll("*");
  svg.querySelectorAll("*").forEach((part, i) => {
    const style = getComputedStyle(part);
    if (style.display === "none") parts[i].setAttribute("display", "none");
    for (const name of DRAWN) parts[i].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "role", "data-v"]) parts[i].removeAttribute(name);
  });
  const { width, height } = svg.viewBox.baseVal;
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ width, height, fill: getComputedStyle(document.body).backgroundColor })) paper.setAttribute(name, value);
  copy.prepend(paper);
  for (const [name, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", width, height })) copy.setAttribute(name, value);
  return new XMLSerializer().serializeToString(copy);
}

async function picture(svg) {
  const url = URL.createObjectURL(new Blob([standalone(svg)], { type: "image/svg+xml" }));
  const image = new Image();
  await new Promise((done, failed) => { Object.assign(image, { onload: done, onerror: failed, src: url }); });
  const { width, height } = svg.viewBox.baseVal;
  const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  return new Promise((done) => { canvas.toBlob(done, "image/png"); });
}

// ---- small things ---------------------------------------------------------------------------------------------------

function startCopy(block) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.querySelector("code").textContent);
      button.textContent = "Copied";
    } catch { // no clipboard for pages in a folder, in some browsers: then it is marked, to be copied by hand
      getSelection().selectAllChildren(block.querySelector("code"));
      button.textContent = "Marked: press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  block.append(button);
}

// A link to something inside a closed part opens it.
function openTarget() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
}

document.addEventListener("DOMContentLoaded", () => {
  startTheme();
  document.querySelectorAll(".plot").forEach(startPlot);
  document.querySelectorAll(".copy").forEach(startCopy);
  openTarget();
  addEventListener("hashchange", openTarget);
});
