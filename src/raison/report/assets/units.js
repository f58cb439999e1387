// The units of a text under keys and pointer, on pages of their own and in the component.

/** The units of an article are one tab stop; the arrow keys go through them, and a bar lights its unit. */
export function liveUnits(article) {
  const units = [...article.querySelectorAll(".unit")];
  units.forEach((unit, place) => unit.setAttribute("tabindex", place ? "-1" : "0"));
  for (const unit of units) unit.addEventListener("keydown", (event) => walk(event, units));
  for (const row of article.querySelectorAll("table.top tr")) {
    const unit = units.find((found) => found.dataset.units.split(" ").includes(row.dataset.unit));
    if (!unit) continue;
    row.addEventListener("mouseenter", () => unit.classList.add("lit"));
    row.addEventListener("mouseleave", () => unit.classList.remove("lit"));
  }
  return units;
}

/** The arrow keys go through the parts of a text as it is read; one of them is the tab stop. */
export function walk(event, units) {
  const place = units.indexOf(event.currentTarget);
  const onward = getComputedStyle(event.currentTarget).direction === "rtl" ? -1 : 1;
  const steps = { ArrowRight: place + onward, ArrowLeft: place - onward, Home: 0, End: units.length - 1 };
  const next = units[steps[event.key]];
  if (!next) return;
  event.preventDefault();
  stopAt(next, units);
  next.focus();
}

/** One unit is the tab stop. */
export function stopAt(unit, units) {
  for (const one of units) one.setAttribute("tabindex", one === unit ? "0" : "-1");
}
