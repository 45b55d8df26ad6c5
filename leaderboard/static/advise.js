// What to take: the rule of `harness/advice/rule.py` for two sliders. The table in the page has every possible answer,
// cheapest first, each with a higher bound than the one before: so the first row that keeps enough is the cheapest.
// It shares its names with board.js.
"use strict";

const GB = 1e9;
const STEPS = 200; // of the slider of sizes, which is logarithmic
const ask = document.getElementById("ask");
const possible = [...document.querySelectorAll("#steps tbody tr")].map((row) => ({
  row,
  link: row.querySelector("a"),
  size: row.cells[2].textContent,
  low: Number(row.dataset.low),
  bytes: Number(row.dataset.size),
}));

// ---- the rule -------------------------------------------------------------------------------------------------------

const keeps = (one, keep) => one.low >= keep;
const fits = (one, gb) => one.bytes / GB <= gb;
const advised = (keep, gb) => possible.find((one) => keeps(one, keep) && fits(one, gb));
const highest = (gb) => possible.findLast((one) => fits(one, gb)); // bounds rise with size
const cheapest = (keep) => possible.find((one) => keeps(one, keep));

// ---- what is shown --------------------------------------------------------------------------------------------------

ask.innerHTML = `<label class="slide">Keep at least <b id="keep-shown"></b> of NDCG@5 <input type="range" id="keep" max="100" step="0.1"></label>
<label class="slide">In at most <b id="size-shown"></b> for a million pages <input type="range" id="size" min="0" max="${STEPS}" step="1"></label>`;
const keep = document.getElementById("keep");
const size = document.getElementById("size");
const answer = document.getElementById("advice");

// Three digits are what is shown, and what counts.
function gigabytes() {
  const { small, large } = ask.dataset;
  return Number((small * (large / small) ** (size.value / STEPS)).toPrecision(3));
}
const inWords = (gb) => (gb >= 1000 ? `${gb / 1000} TB` : `${gb} GB`);
const bound = (one) => (Math.floor(one.low * 10) / 10).toFixed(1);
const linked = (one) => one.link.cloneNode(true);

function showAdvice() {
  const kept = Number(keep.value);
  const gb = gigabytes();
  const chosen = advised(kept, gb);
  for (const one of possible) one.row.classList.toggle("best", one === chosen);
  for (const [slider, name, text] of [[keep, "keep", `${kept} %`], [size, "size", inWords(gb)]]) {
    document.getElementById(`${name}-shown`).textContent = text;
    slider.setAttribute("aria-valuetext", text);
  }
  if (chosen) {
    const smaller = possible[possible.indexOf(chosen) - 1];
    answer.replaceChildren("Take ", linked(chosen), `: ${chosen.size} for a million pages.`);
    if (smaller) answer.append(` One step smaller surely keeps only ${bound(smaller)} %.`);
    return;
  }
  const most = highest(gb);
  const least = cheapest(kept);
  answer.replaceChildren(`Nothing surely keeps ${kept} % in ${inWords(gb)}.`);
  if (most) answer.append(" In that size: ", linked(most), `, which keeps ${bound(most)} %.`);
  if (least) answer.append(` To keep ${kept} %: `, linked(least), `, ${least.size}.`);
}

keep.min = ask.dataset.least;
keep.value = ask.dataset.keep;
size.value = STEPS;
ask.hidden = false;
ask.addEventListener("submit", (event) => event.preventDefault());
ask.addEventListener("input", showAdvice);
showAdvice();
