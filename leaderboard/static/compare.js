// Two methods side by side. Values and intervals were computed when the site was built; here they are only shown.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const source = document.getElementById("pairs");

// What is of no use without this script is not in the page.
const PICK = `<label>Method <select id="a"></select></label> <label>minus <select id="b"></select></label>
<fieldset class="budgets"><legend>Budget</legend><span id="budgets"></span></fieldset>
<button type="button" id="swap">Swap</button>`;
const RESULT = `<h2 id="pair-title" aria-live="polite"></h2><div class="scroll" tabindex="0" role="region" aria-labelledby="pair-title">
<table class="pair"><thead><tr><th scope="col" class="t">Data set</th><th scope="col">Difference</th><th scope="col">95 % interval</th><td></td>
<th scope="col" id="head-a"></th><th scope="col" id="head-b"></th></tr></thead><tbody></tbody></table></div>`;

const known = new Map();
function boundsArrived(place, found) { known.set(place, found); }

function startCompare(data) {
  document.getElementById("pick").innerHTML = PICK;
  document.getElementById("result").innerHTML = RESULT;
  const [first, second] = [document.getElementById("a"), document.getElementById("b")];
  const size = data.methods.length;
  const budgets = data.budgets.map((name, i) => {
    const label = document.createElement("label");
    const radio = Object.assign(document.createElement("input"), { type: "radio", name: "budget", value: i });
    const span = document.createElement("span");
    span.textContent = name;
    label.append(radio, span);
    return label;
  });
  document.getElementById("budgets").replaceChildren(...budgets);
  for (const select of [first, second]) select.append(...data.methods.map((name, i) => new Option(name, i)));

  // Intervals of a method's pairs with all later ones are a file of their own, loaded when they are first asked for.
  const bounds = (a, b, budget, set) => {
    const found = known.get(Math.min(a, b))?.[Math.abs(a - b) - 1]?.[budget][set];
    return found && (a < b ? found : [-found[1], -found[0]]);
  };
  const needed = () => {
    const [low, high] = [Number(first.value), Number(second.value)].sort((x, y) => x - y);
    return low !== high && high < data.paired && !known.has(low) ? low : null;
  };
  const shown = (value) => (Math.round(10 * value) < 0 ? "−" : "") + Math.abs(value).toFixed(1);

  function rows() {
    const [a, b] = [Number(first.value), Number(second.value)];
    const budget = budgets.findIndex((label) => label.firstChild.checked);
    return data.sets.map((name, set) => {
      const [x, y] = [data.values[budget][a][set], data.values[budget][b][set]];
      if (x === null || y === null || a === b) return { name, x, y };
      return { name, x, y, difference: x - y, between: bounds(a, b, budget, set) };
    });
  }

  function picture(row, reach) {
    const at = (value) => 130 + (value / reach) * 120;
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 260 18");
    svg.setAttribute("aria-hidden", "true");
    const add = (tag, attributes) => {
      const shape = document.createElementNS(SVG, tag);
      for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
      svg.append(shape);
    };
    add("path", { class: "axis", d: "M130 0V18" });
    if (row.between) add("path", { class: "bar", d: `M${at(row.between[0])} 9H${at(row.between[1])}` });
    const clear = row.between && (row.between[0] > 0 || row.between[1] < 0);
    add("circle", { class: clear ? "clear" : "", cx: at(row.difference), cy: 9, r: 4.5 });
    return svg;
  }

  function draw() {
    const file = needed();
    if (file !== null) load(`compare/${data.files}.${file}.js`).then(draw);
    const found = rows();
    const reach = Math.max(1, ...found.flatMap((row) => [row.difference ?? 0, ...(row.between ?? [])].map(Math.abs)));
    const [a, b] = [data.methods[first.value], data.methods[second.value]];
    document.getElementById("pair-title").textContent = `${a} minus ${b}`;
    document.getElementById("head-a").textContent = a;
    document.getElementById("head-b").textContent = b;
    document.querySelector(".pair tbody").replaceChildren(...found.map((row) => {
      const line = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = row.name;
      const figure = (value) => (value === null || value === undefined ? "–" : shown(value));
      const between = row.between ? `[${row.between.map(shown).join(", ")}]` : "–";
      const cell = (text) => Object.assign(document.createElement("td"), { textContent: text });
      const drawn = document.createElement("td");
      if (row.difference !== undefined) drawn.append(picture(row, reach));
      line.append(head, cell(row.difference === undefined ? "–" : shown(row.difference)), cell(between), drawn, cell(figure(row.x)), cell(figure(row.y)));
      return line;
    }));
    const parts = new URLSearchParams({ a, b, budget: data.budgets[budgets.findIndex((label) => label.firstChild.checked)] });
    history.replaceState(null, "", `#${parts}`);
  }

  function readAddress() {
    const parts = new URLSearchParams(location.hash.slice(1));
    const at = (name, otherwise) => Math.max(data.methods.indexOf(parts.get(name)), data.methods.includes(parts.get(name)) ? 0 : otherwise);
    first.value = at("a", 0);
    second.value = at("b", first.value === "0" ? Math.min(1, size - 1) : 0);
    if (first.value === second.value) second.value = first.value === "0" ? Math.min(1, size - 1) : 0; // never against itself
    const budget = data.budgets.indexOf(parts.get("budget"));
    budgets[budget < 0 ? Math.floor(budgets.length / 2) : budget].firstChild.checked = true;
  }

  document.getElementById("pick").hidden = false;
  document.getElementById("result").hidden = false;
  document.getElementById("pick").addEventListener("change", draw);
  document.getElementById("pick").addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("swap").addEventListener("click", () => {
    [first.value, second.value] = [second.value, first.value];
    draw();
  });
  addEventListener("hashchange", () => { readAddress(); draw(); });
  readAddress();
  draw();
}

if (source) startCompare(JSON.parse(source.textContent));
