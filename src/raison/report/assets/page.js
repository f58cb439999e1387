"use strict";
// Without this script every unit is a tab stop with a plain tooltip; with it, one text is one tab stop,
// the arrow keys walk through its units, and units and their bars light up together.
const tip = document.getElementById("tip");

function show(unit) {
  tip.textContent = unit.dataset.tip;
  tip.hidden = false;
  const box = unit.getClientRects()[0];
  const left = Math.min(Math.max(4, box.left), innerWidth - tip.offsetWidth - 4);
  const above = box.top - tip.offsetHeight - 6;
  tip.style.left = left + "px";
  tip.style.top = (above > 4 ? above : box.bottom + 6) + "px";
}

function hide() {
  tip.hidden = true;
}

for (const article of document.querySelectorAll("article.raison")) {
  const units = [...article.querySelectorAll(".unit")];
  units.forEach((unit, place) => {
    unit.dataset.tip = unit.title;
    unit.removeAttribute("title");
    unit.tabIndex = place ? -1 : 0;
    unit.addEventListener("mouseenter", () => show(unit));
    unit.addEventListener("focus", () => show(unit));
    unit.addEventListener("mouseleave", hide);
    unit.addEventListener("blur", hide);
    unit.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: units.length - 1 };
      const next = units[steps[event.key]];
      if (event.key === "Escape") hide();
      if (!next) return;
      event.preventDefault();
      unit.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  });
  for (const row of article.querySelectorAll("table.top tr")) {
    const unit = units.find((found) => found.dataset.units.split(" ").includes(row.dataset.unit));
    if (!unit) continue;
    row.addEventListener("mouseenter", () => unit.classList.add("lit"));
    row.addEventListener("mouseleave", () => unit.classList.remove("lit"));
  }
}
addEventListener("scroll", hide, { passive: true });
