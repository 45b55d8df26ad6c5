// The board: sort, filter, facets, columns, budgets, downloads. The table in the page is the data; there is no copy.
// A large board's page holds its best rows only; the others are loaded when something asks for all of them.
// The state is the part of the address after "#", so that a link shows what its sender saw.
"use strict";

const table = document.getElementById("board");
const heads = [...table.tHead.rows[0].cells];
const keys = heads.map((head) => head.dataset.key);
const column = Object.fromEntries(keys.map((key, i) => [key, i]));
const bodies = Object.fromEntries([...table.tBodies].map((body) => [body.dataset.budget, body]));
const tools = document.getElementById("tools"); // empty: it is of no use without this script
tools.innerHTML = `<fieldset class="budgets"><legend>Budget</legend></fieldset>
<fieldset class="budgets" id="codecs" hidden><legend>Codec</legend></fieldset>
<label class="find">Filter <input type="search" id="find" autocomplete="off" placeholder="method, track, status"></label>
<details class="menu"><summary>Facets</summary><div id="facets"></div></details>
<details class="menu"><summary>Columns</summary><div id="choose"></div></details>
<span class="get"><button type="button" id="csv">CSV</button><button type="button" id="json">JSON</button><button type="button" id="latex">LaTeX</button><a id="permalink" href="#">Link to this view</a></span>`;
function radio(name, value, shown, place) {
  const button = Object.assign(document.createElement("input"), { type: "radio", name, value });
  const label = document.createElement("label");
  label.append(button, Object.assign(document.createElement("span"), { textContent: shown }));
  place.append(label);
  return button;
}
const budgetName = (body) => body.rows[0].textContent.trim().replace("Budget ", "").replace(/:.*/s, "");
const radios = Object.entries(bodies).map(([value, body]) => radio("budget", value, budgetName(body), tools.firstChild));
// A board with several codecs shows one at a time, so that a method has one row; "all" shows every one.
const ALL = "all";
const codecs = table.dataset.codecs ? [...table.dataset.codecs.split(" / "), ALL] : [];
const codecChoice = document.getElementById("codecs");
const stored = codecs.map((value) => radio("codec", value, value, codecChoice));
codecChoice.hidden = !codecs.length;
const defaults = {
  budget: tools.dataset.budget,
  codec: codecs[0] ?? ALL,
  sort: "retention",
  down: true,
  find: "",
  all: false,
  facets: {}, // key -> the values shown; a missing key shows all
  // COLUMNS: written before this file by `site.py`, from `columns.py`. A phone has room for the figure and the size
  columns: keys.filter((key) => (matchMedia("(max-width: 700px)").matches ? COLUMNS[key].phone : !COLUMNS[key].extra)),
};
const ROOM = 150; // rows laid out at first: a thousand take a browser a third of a second, at every sort
const FACETS = ["track", "status"].filter((key) => key in column);
let state = structuredClone(defaults);

// ---- rows: read once, when first needed -----------------------------------------------------------------------------

const read = new Map();
function rowsOf(budget) {
  if (!read.has(budget)) {
    const rows = [...bodies[budget].rows].filter((row) => !row.classList.contains("head"));
    read.set(budget, rows.map((row, place) => {
      const text = [...row.cells].map((cell) => (cell.querySelector("a") ?? cell).textContent.trim()); // a name without its mark
      return { row, place, text, words: text.join(" ").toLowerCase() };
    }));
  }
  return read.get(budget);
}
// Rows that the page does not hold; once they are there the table is read again.
const whole = new Set(Object.keys(bodies).filter((budget) => bodies[budget].dataset.parts === "0"));
let arriving;
function rowsArrived(text) {
  const holder = document.createElement("template");
  holder.innerHTML = text; // rows, escaped when they were made
  arriving.append(holder.content);
}
async function loadAll(budget) {
  for (let part = 0; part < Number(bodies[budget].dataset.parts); part++) {
    arriving = bodies[budget]; // files run in the order in which they are awaited
    await load(`board/${table.dataset.name}.${budget}.${part}.js`);
  }
  whole.add(budget);
  read.delete(budget);
  drawControls();
  draw();
}
function asksForAll() {
  return state.all || filtered() || state.codec !== defaults.codec || state.sort !== defaults.sort || !state.down;
}
const filtered = () => Boolean(state.find || Object.keys(state.facets).length);
const isText = (i) => heads[i].className !== "";
function number(text) {
  const found = /^\(?([+−]?\d+(\.\d+)?)(\)|!| \[|$)/.exec(text);
  return found ? Number(found[1].replace("−", "-")) : null; // 13/14, and what is only quoted, is no figure
}

// ---- what is shown --------------------------------------------------------------------------------------------------

// Where nothing is pruned there is a row a codec, and no float16: then all are shown.
function storedSo(entry) {
  const own = state.codec === codecs[0] ? "own" : null; // a form of a method's own stands with float16
  const same = (one) => [state.codec, own].includes(one.text[column.codec]);
  return state.codec === ALL || same(entry) || !rowsOf(state.budget).some(same);
}
function matches(entry) {
  const words = state.find.toLowerCase().split(/\s+/).filter(Boolean);
  return words.every((word) => entry.words.includes(word))
    && FACETS.every((key) => !state.facets[key] || state.facets[key].includes(entry.text[column[key]]));
}

const passing = (rows) => rows.filter((entry) => matches(entry) && storedSo(entry));

function ordered(rows) {
  const i = column[state.sort];
  const sign = state.down ? -1 : 1;
  const value = isText(i) ? (entry) => entry.text[i].toLowerCase() : (entry) => number(entry.text[i]);
  const known = rows.map((entry) => [value(entry), entry]);
  return known.sort(([a, x], [b, y]) => {
    if (a === null || b === null) return (a === null) - (b === null) || x.place - y.place; // without a figure: last
    return (a < b ? -sign : a > b ? sign : 0) || x.place - y.place;
  }).map(([, entry]) => entry);
}

function shownRows(rows = ordered(rowsOf(state.budget))) {
  const found = passing(rows);
  return state.all ? found : found.slice(0, ROOM);
}
function shownColumns() { return keys.filter((key) => state.columns.includes(key)); }

const sheet = new CSSStyleSheet();
document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];

function draw() {
  if (asksForAll() && !whole.has(state.budget)) loadAll(state.budget);
  for (const [budget, body] of Object.entries(bodies)) body.hidden = budget !== state.budget;
  for (const body of document.querySelectorAll("#heat tbody")) body.hidden = body.dataset.budget !== state.budget;
  const rows = ordered(rowsOf(state.budget));
  const total = whole.has(state.budget) ? rows.length : Number(bodies[state.budget].dataset.rows);
  const found = filtered() || state.codec !== ALL ? passing(rows).length : total;
  const visible = new Set(shownRows(rows));
  for (const entry of rows) entry.row.hidden = !visible.has(entry);
  bodies[state.budget].append(...rows.map((entry) => entry.row));
  heads.forEach((head) => {
    if (head.dataset.key === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
  const hidden = keys.flatMap((key, i) => (state.columns.includes(key) ? [] : [`#board tr:not(.head) > :nth-child(${i + 1})`]));
  sheet.replaceSync(hidden.length ? `${hidden.join()} { display: none }` : "");
  followBoard(rows);
  const more = document.getElementById("more");
  more.hidden = visible.size === found;
  more.textContent = `Show all ${found}`;
  const name = heads[column[state.sort]].firstElementChild.textContent;
  document.getElementById("shown").textContent =
    `${visible.size} of ${total} rows, by ${name}, ${state.down ? "descending" : "ascending"}`;
}

// Plot and heat map show the methods that pass the filter; the map has the table's order too.
const methodOf = (row) => row.querySelector("a").textContent.trim();
function followBoard(rows) {
  const names = filtered() && new Set(Object.keys(bodies).flatMap((budget) => rowsOf(budget).filter(matches).map((entry) => entry.text[column.method])));
  for (const line of document.querySelectorAll("#plot .s")) line.classList.toggle("off", names && !names.has(line.dataset.method));
  document.getElementById("plot")?.dispatchEvent(new Event("changed"));
  const heat = document.querySelector("#heat tbody:not([hidden])");
  const places = new Map(rows.map((entry, place) => [entry.text[column.method], place]));
  const lines = [...heat.querySelectorAll("tr:not(.head)")];
  const shown = filtered() || state.codec !== ALL ? new Set(passing(rows).map((entry) => entry.text[column.method])) : null;
  for (const row of lines) row.hidden = shown !== null && !shown.has(methodOf(row));
  heat.append(...lines.sort((a, b) => (places.get(methodOf(a)) ?? Infinity) - (places.get(methodOf(b)) ?? Infinity)));
}

// ---- the address ----------------------------------------------------------------------------------------------------

function address() {
  const parts = new URLSearchParams();
  if (state.budget !== defaults.budget) parts.set("budget", state.budget);
  if (state.sort !== defaults.sort || state.down !== defaults.down) parts.set("sort", (state.down ? "-" : "") + state.sort);
  if (state.codec !== defaults.codec) parts.set("codec", state.codec);
  if (state.find) parts.set("find", state.find);
  if (state.all) parts.set("all", "1");
  for (const key of FACETS) if (state.facets[key]) parts.set(key, state.facets[key].join("|"));
  if (state.columns.join() !== defaults.columns.join()) parts.set("columns", state.columns.join());
  return parts.toString();
}

function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  state = structuredClone(defaults);
  if (parts.get("budget") in bodies) state.budget = parts.get("budget");
  if (codecs.includes(parts.get("codec"))) state.codec = parts.get("codec");
  const sort = parts.get("sort") ?? "";
  if (sort.replace(/^-/, "") in column) { state.sort = sort.replace(/^-/, ""); state.down = sort.startsWith("-"); }
  state.find = parts.get("find") ?? "";
  state.all = parts.get("all") === "1";
  for (const key of FACETS) if (parts.has(key)) state.facets[key] = parts.get(key).split("|");
  const columns = (parts.get("columns") ?? "").split(",").filter((key) => key in column);
  if (columns.length) state.columns = keys.filter((key) => columns.includes(key) || key === "method");
}

function update(change) {
  Object.assign(state, change);
  draw();
  const hash = address();
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname.split("/").pop());
  link();
}
function link() {
  const hash = address();
  document.getElementById("permalink").href = `#${hash}`;
  for (const other of document.querySelectorAll(".picker a")) other.hash = hash; // other views keep the choices
}

// ---- controls -------------------------------------------------------------------------------------------------------

function checkbox(name, value, label, checked) {
  const box = document.createElement("input");
  Object.assign(box, { type: "checkbox", name, value, checked });
  const row = document.createElement("label");
  row.append(box, label);
  return row;
}

function drawControls() {
  for (const radio of radios) radio.checked = radio.value === state.budget;
  for (const radio of stored) radio.checked = radio.value === state.codec;
  document.getElementById("find").value = state.find;
  document.getElementById("facets").replaceChildren(...FACETS.map((key) => {
    const values = [...new Set(Object.keys(bodies).flatMap((b) => rowsOf(b).map((entry) => entry.text[column[key]])))].sort();
    const set = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = heads[column[key]].firstElementChild.textContent;
    set.append(legend, ...values.map((value) => checkbox(key, value, value, !state.facets[key] || state.facets[key].includes(value))));
    return set;
  }));
  document.getElementById("choose").replaceChildren(...heads.filter((head) => head.dataset.key !== "method").map((head) =>
    checkbox("column", head.dataset.key, head.firstElementChild.textContent, state.columns.includes(head.dataset.key))));
}

function sortBy(head) {
  const same = head.dataset.key === state.sort;
  update({ sort: head.dataset.key, down: same ? !state.down : !COLUMNS[head.dataset.key].up });
}

function start() {
  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent.trim();
    button.addEventListener("click", () => sortBy(head));
    head.title = COLUMNS[head.dataset.key].hint;
    head.replaceChildren(button);
  }
  tools.hidden = false;
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.addEventListener("change", ({ target }) => {
    if (target.name === "budget") update({ budget: target.value });
    if (target.name === "codec") update({ codec: target.value });
    if (target.name === "column") {
      const chosen = [...tools.querySelectorAll("input[name=column]:checked")].map((box) => box.value);
      update({ columns: keys.filter((key) => key === "method" || chosen.includes(key)) });
    }
    if (FACETS.includes(target.name)) {
      const boxes = [...tools.querySelectorAll(`input[name=${target.name}]`)];
      const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
      const { [target.name]: _, ...others } = state.facets;
      update({ facets: chosen.length === boxes.length ? others : { ...others, [target.name]: chosen } });
    }
  });
  document.getElementById("find").addEventListener("input", ({ target }) => update({ find: target.value }));
  document.getElementById("more").addEventListener("click", () => update({ all: true }));
  document.getElementById("csv").addEventListener("click", () => save(csv(), "text/csv", fileName("csv")));
  document.getElementById("json").addEventListener("click", () => save(json(), "application/json", fileName("json")));
  document.getElementById("latex").addEventListener("click", () => save(latex(), "text/x-tex", fileName("tex")));
  document.getElementById("plot")?.addEventListener("redrawn", draw);
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.activeElement.closest?.("details.menu[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  });
  const follow = () => { readAddress(); drawControls(); draw(); link(); };
  addEventListener("hashchange", follow);
  follow();
}

start();
