// Downloads of the board: what is shown, and nothing else. Part of board.js, which `site.py` puts together.
"use strict";

// "99.0 [98.6, 99.4]" becomes three columns; other cells stay one.
const WIDE = ["retention", "area", "local"];
function exported() {
  const columns = shownColumns();
  const names = columns.flatMap((key) => (WIDE.includes(key) ? [key, `${key}_low`, `${key}_high`] : [key]));
  const rows = shownRows().map((entry) => columns.flatMap((key) => {
    const text = entry.text[column[key]];
    if (!WIDE.includes(key)) return [text];
    const parts = /^(\S+) \[(\S+), (\S+)\]$/.exec(text);
    return parts ? parts.slice(1) : [text, "", ""];
  }));
  return { names: ["budget", ...names], rows: rows.map((row) => [state.budget, ...row]) };
}

const csv = () => {
  const { names, rows } = exported();
  return csvText([names, ...rows.map((row) => row.map((text) => (text === "–" ? "" : text)))]);
};
function json() {
  const { names, rows } = exported();
  const value = (text) => (text === "–" || text === "" ? null : /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);
  const found = rows.map((row) => Object.fromEntries(row.map((text, i) => [names[i], value(text)])));
  return JSON.stringify({ view: table.dataset.name, note: table.dataset.note ?? null, rows: found }, null, 1);
}
function latex() {
  const columns = shownColumns();
  const names = columns.map((key) => heads[column[key]].firstElementChild.textContent);
  return latexText(names, shownRows().map((entry) => columns.map((key) => entry.text[column[key]])), 2);
}
const fileName = (ending) => `${table.dataset.name}-${state.budget}.${ending}`;
