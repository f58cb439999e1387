"use strict";
// Without this script the list is whole and in the data's order; with it, it can be filtered, and sorted by a heading.
const table = document.querySelector("table.texts");
const rows = [...table.tBodies[0].rows];
const filter = document.getElementById("filter");

filter.addEventListener("input", () => {
  const wanted = filter.value.toLowerCase();
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
});

function key(row, column) {
  const text = row.cells[column].dataset.value ?? row.cells[column].textContent.replaceAll(",", "");
  return text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text;
}

[...table.tHead.rows[0].cells].forEach((heading, column) => {
  const button = document.createElement("button");
  button.textContent = heading.textContent;
  heading.replaceChildren(button);
  button.addEventListener("click", () => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sorted = rows.slice().sort((a, b) => {
      const first = key(a, column);
      const second = key(b, column);
      return first < second ? -1 : first > second ? 1 : 0;
    });
    table.tBodies[0].append(...(down ? sorted.reverse() : sorted));
  });
});
