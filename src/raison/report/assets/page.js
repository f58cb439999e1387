// Without this script every unit is a tab stop with a plain tooltip; with it, one text is one tab stop, the arrow keys
// walk through its units, and units and their bars light up together.
import { liveUnits } from "./units.js";

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
  for (const unit of liveUnits(article)) {
    unit.dataset.tip = unit.title;
    unit.removeAttribute("title");
    for (const sign of ["mouseenter", "focus"]) unit.addEventListener(sign, () => show(unit));
    for (const sign of ["mouseleave", "blur"]) unit.addEventListener(sign, hide);
    unit.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  }
}
addEventListener("scroll", hide, { passive: true });
