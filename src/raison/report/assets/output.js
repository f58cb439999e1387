/**
 * Let the prompt's colours follow the output token under the pointer or the focus; a click or tap holds one.
 *
 * `data` has a palette and the state of each token, and of "all". `changed` is told which tokens are held. What is given
 * back holds other tokens with a state of theirs.
 */
export function liveOutput(article, data, changed = () => {}) {
  const units = [...article.querySelectorAll(".text .unit")];
  const buttons = [...article.querySelectorAll("button[data-token]")];
  const rows = [...article.querySelectorAll("tr[data-token]")];
  let held = { tokens: ["all"], state: data.states.all };

  function paint({ tokens, state }) {
    article.querySelector(".shown").textContent = state.heading;
    article.querySelector(".low").textContent = state.low;
    article.querySelector(".high").textContent = state.high;
    units.forEach((unit, place) => {
      const shade = state.shades[place];
      unit.classList.toggle("later", shade === null);
      // What the page came with: its sheet's, not the element's own.
      delete unit.dataset.style;
      unit.style.cssText = shade === null ? "" : data.palette[shade];
      // A page of its own has a box for it.
      if (unit.title) unit.title = state.values[place];
      else unit.dataset.tip = state.values[place];
      unit.setAttribute("aria-label", unit.textContent.trim() + ": " + state.values[place]);
    });
    for (const row of rows) row.classList.toggle("lit", tokens.includes(row.dataset.token));
  }

  function hold(tokens, state) {
    held = { tokens, state };
    for (const button of buttons) button.setAttribute("aria-pressed", String(tokens.includes(button.dataset.token)));
    paint(held);
    changed(tokens);
  }

  function toggle(token) {
    const next = held.tokens.length === 1 && held.tokens[0] === token ? "all" : token;
    hold([next], data.states[next]);
  }

  const look = (token) => paint({ tokens: [token], state: data.states[token] });
  for (const part of [...buttons, ...rows]) {
    part.addEventListener("mouseenter", () => look(part.dataset.token));
    part.addEventListener("mouseleave", () => paint(held));
    part.addEventListener("click", (event) => {
      if (!event.shiftKey) toggle(part.dataset.token);
    });
  }
  for (const button of buttons) {
    button.addEventListener("focus", () => look(button.dataset.token));
    button.addEventListener("blur", () => paint(held));
  }
  paint(held);
  return hold;
}
