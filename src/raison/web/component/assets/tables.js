// Tables that sort: a heading is a button, and on a narrow screen each row becomes a list of its cells. One that is
// wider than its place scrolls in a box of its own.
import { make } from "./elements.js";

/** A table. `columns` are {said, number, main, order, cell}: `cell(row)` gives text or an element, `order` what it is
 * sorted by. `sorting` is {by, descending, choose} or null. The rows keep their roles when they are shown as lists. */
export function dataTable(caption, columns, rows, sorting = null) {
  const head = make("tr", { role: "row" }, ...columns.map((column) => heading(column, sorting)));
  const body = make("tbody", { role: "rowgroup" }, ...rows.map((row) => make("tr", { role: "row" }, ...columns.map((column) => cell(column, row)))));
  const table = make("table", { role: "table", class: "data" }, make("caption", {}, caption), make("thead", { role: "rowgroup" }, head), body);
  return make("div", { class: "table-box" }, table);
}

function heading(column, sorting) {
  const kind = column.number ? "number" : null;
  if (!sorting || !column.order) return make("th", { role: "columnheader", scope: "col", class: kind }, ...breakable(column.said));
  const own = sorting.by === column.order;
  const sorted = own ? (sorting.descending ? "descending" : "ascending") : null;
  const mark = make("span", { "aria-hidden": "true" }, own ? (sorting.descending ? "\u00a0▼" : "\u00a0▲") : "");
  // Numbers are most often wanted from the largest, words from the first.
  const choose = () => sorting.choose(column.order, own ? !sorting.descending : Boolean(column.number));
  const control = make("button", { type: "button", class: "sort", onclick: choose }, ...breakable(column.said), mark);
  return make("th", { role: "columnheader", scope: "col", class: kind, "aria-sort": sorted }, control);
}

/** A name that may break where a reader would, as on the pages of studies. */
function breakable(name) {
  return name.split(/(?<=[_(/])/).flatMap((part, place) => (place ? [make("wbr"), part] : [part]));
}

function cell(column, row) {
  const content = column.cell(row);
  return make("td", { role: "cell", class: column.number ? "number" : column.main ? "main" : null, "data-said": column.said }, content ?? "–");
}

/** A number with a given count of decimals and a true minus sign, but none before zero; a dash for no number. */
export function decimal(value, places = 3) {
  if (typeof value !== "number") return "–";
  const said = value.toFixed(places);
  return Number(said) === 0 ? said.replace("-", "") : said.replace("-", "\u2212");
}

/** A count with its noun. */
export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** An estimate with its interval. */
export function estimate(value, low, high, places = 3) {
  return `${decimal(value, places)} (${decimal(low, places)} to ${decimal(high, places)})`;
}

/** A bar around zero, as long as the value is beside the largest one. */
export function sizeBar(value, largest) {
  const bar = make("span", { class: `bar plain ${value < 0 ? "against" : "for"}` });
  bar.style.width = `${largest > 0 ? ((50 * Math.abs(value)) / largest).toFixed(1) : 0}%`;
  return make("span", { class: "axis", "aria-hidden": "true" }, bar);
}

/** A word with a capital. */
export function upper(word) {
  return word[0].toUpperCase() + word.slice(1);
}

/** A share in per cent. */
export function percentOf(value) {
  return `${Math.round(100 * value)} %`;
}
