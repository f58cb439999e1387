// Without this script the colours are those of the whole output; with it, they follow the output token under the
// pointer or the focus, and a click or tap holds one.
for (const article of document.querySelectorAll("article.generation")) {
  const data = JSON.parse(article.querySelector('script[type="application/json"]').textContent);
  const units = [...article.querySelectorAll(".text .unit")];
  const buttons = [...article.querySelectorAll(".out")];
  const rows = [...article.querySelectorAll("tr[data-token]")];
  let held = "all";

  function paint(token) {
    const state = data.states[token];
    article.querySelector(".shown").textContent = state.heading;
    article.querySelector(".low").textContent = state.low;
    article.querySelector(".high").textContent = state.high;
    units.forEach((unit, place) => {
      const shade = state.shades[place];
      unit.classList.toggle("later", shade === null);
      // What the page came with: its sheet's, not the element's own.
      delete unit.dataset.style;
      unit.style.cssText = shade === null ? "" : data.palette[shade];
      unit.dataset.tip = state.values[place];
      unit.setAttribute("aria-label", unit.textContent.trim() + ": " + state.values[place]);
    });
    for (const row of rows) row.classList.toggle("lit", row.dataset.token === token);
  }

  function hold(token) {
    held = held === token ? "all" : token;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.token === held));
    paint(held);
  }

  for (const part of [...buttons, ...rows]) {
    part.addEventListener("mouseenter", () => paint(part.dataset.token));
    part.addEventListener("mouseleave", () => paint(held));
    part.addEventListener("click", () => hold(part.dataset.token));
  }
  for (const button of buttons) {
    button.addEventListener("focus", () => paint(button.dataset.token));
    button.addEventListener("blur", () => paint(held));
  }
  paint(held);
}
