// Without this script the list is whole and in the data's order; with it, it can be filtered, and sorted by a heading.
// A notebook may hold several lists, each of which brings the script.
for (const table of document.querySelectorAll("table.texts:not([data-live])")) liveTexts(table);

function liveTexts(table) {
  table.dataset.live = "";
  const rows = [...table.tBodies[0].rows];
  const field = table.closest("article, nav").querySelector(".filter");
  // Of a cell that holds a map, what is seen while it is folded.
  const said = (cell) => cell.dataset.folded ?? cell.textContent;

  const found = document.createElement("output");
  field.after(" ", found);
  field.hidden = false;
  field.querySelector("input").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const row of rows) row.hidden = ![...row.cells].some((cell) => said(cell).toLowerCase().includes(wanted));
    found.textContent = wanted ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
  });

  function key(row, column) {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? said(cell).replaceAll(",", "");
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
}
