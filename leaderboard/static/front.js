// The front page: a search over methods, backbones and boards. Its words are loaded when the field is first used.
"use strict";

const MOST = 12;
let words = [];
let parts = 1;
function searchArrived(found, count) { words = words.concat(found); parts = count; }

async function loadWords() {
  await load("search.0.js");
  for (let part = 1; part < parts; part++) await load(`search.${part}.js`);
}

function startSearch(form) {
  form.innerHTML = `<label for="find">Find a method, backbone or benchmark</label>
<input type="search" id="find" autocomplete="off" role="combobox" aria-expanded="false" aria-controls="found" aria-autocomplete="list">
<ul id="found" role="listbox" aria-label="Found" hidden></ul>`;
  form.hidden = false;
  const field = form.querySelector("input");
  const list = form.querySelector("ul");
  let chosen = -1;

  const choose = (place) => {
    chosen = place;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === chosen)));
    const item = list.children[chosen];
    if (item) { field.setAttribute("aria-activedescendant", item.id); item.scrollIntoView({ block: "nearest" }); } else field.removeAttribute("aria-activedescendant");
  };
  const draw = async () => {
    const asked = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (asked.length) await loadWords();
    const fits = ([kind, name]) => asked.every((word) => `${kind} ${name}`.toLowerCase().includes(word));
    const found = asked.length ? words.filter(fits) : [];
    found.sort(([, a], [, b]) => b.toLowerCase().startsWith(asked[0]) - a.toLowerCase().startsWith(asked[0]));
    list.replaceChildren(...found.slice(0, MOST).map(([kind, name, path], i) => {
      const item = Object.assign(document.createElement("li"), { id: `found-${i}` });
      item.setAttribute("role", "option");
      const link = Object.assign(document.createElement("a"), { href: path, textContent: name, tabIndex: -1 });
      const what = Object.assign(document.createElement("small"), { textContent: kind });
      item.append(link, " ", what);
      return item;
    }));
    if (asked.length && !found.length) {
      const none = Object.assign(document.createElement("li"), { textContent: "nothing of that name" });
      none.setAttribute("role", "option");
      list.append(none);
    }
    list.hidden = !asked.length;
    field.setAttribute("aria-expanded", String(!list.hidden));
    choose(-1);
  };
  field.addEventListener("input", draw);
  field.addEventListener("focus", () => load("search.0.js"));
  field.addEventListener("keydown", (event) => {
    const count = list.children.length;
    if (event.key === "ArrowDown" && count) { event.preventDefault(); choose((chosen + 1) % count); }
    if (event.key === "ArrowUp" && count) { event.preventDefault(); choose((chosen + count - 1) % count); }
    if (event.key === "Escape") { field.value = ""; draw(); }
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    (list.children[Math.max(0, chosen)]?.querySelector("a"))?.click();
  });
  document.addEventListener("click", (event) => { if (!form.contains(event.target)) list.hidden = true; });
}

// The words beside the plot follow the board that is chosen.
function startChoice(choice) {
  choice.addEventListener("change", () => {
    const option = choice.selectedOptions[0];
    document.getElementById("plot-what").textContent = option.textContent;
    const note = document.getElementById("plot-nano");
    if (note) note.hidden = !option.dataset.nano;
  });
}

startSearch(document.getElementById("search"));
const choice = document.getElementById("plot-view");
if (choice) startChoice(choice);
