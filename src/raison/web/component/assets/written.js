// An explained output, painted from its view in the same elements as its page of its own.
import { make } from "./elements.js";
import { liveOutput } from "../../../report/assets/output.js";
import { liveUnits, walk } from "../../../report/assets/units.js";
import { computed, legend, passages } from "./map.js";

/**
 * The article of a view under a heading. `on.span(first, last)` is asked for the state of several tokens, and `on.held(number)` is told
 * which one token is held; undefined for none.
 */
export function paintedOutput(view, heading, on) {
  const tokens = view.tokens.map((token, number) => tokenButton(token.text, { "data-token": number, title: token.heading }));
  const whole = tokenButton("whole output", { class: "out all", "data-token": "all" });
  const hint = "Point at a token of the answer, or go to it with the arrow keys; with Shift a span of tokens.";
  const article = make(
    "article",
    { class: "raison generation", "aria-label": heading || "Answer" },
    heading ? make("p", { class: "heading" }, heading) : null,
    make("p", { class: "verdict" }, "Written: ", make("b", {}, make("bdi", { translate: "no" }, view.written))),
    make("p", { class: "goal" }, `Explained: ${view.goal}, ${view.unit} by ${view.unit}, with ${view.method}. ${hint}`),
    make("div", { class: "output", role: "group", "aria-label": "Output tokens" }, whole, ...tokens),
    make("p", { class: "label shown" }),
    ...passages(view, null),
    legend(view),
    ...view.cautions.map((said) => make("p", { class: "warning" }, `Warning: ${said}.`)),
    matrix(view, heading),
    computed(view.facts),
  );
  liveUnits(article);
  const live = liveOutput(article, view, (held) => on.held(held.length === 1 && held[0] !== "all" ? Number(held[0]) : undefined));
  spans(tokens, live, view, on.span);
  [whole, ...tokens].forEach((one, place, all) => {
    one.setAttribute("tabindex", place ? "-1" : "0");
    one.addEventListener("keydown", (event) => walk(event, all));
  });
  return article;
}

function tokenButton(said, attributes) {
  return make("button", { type: "button", class: "out", "aria-pressed": "false", ...attributes }, make("bdi", { translate: "no" }, said));
}

/** With Shift a span goes on from the token that was held or in focus to the one that is clicked or reached. */
function spans(tokens, live, view, span) {
  let anchor = 0;
  let growing = false;
  let wanted = 0;
  async function reach(number) {
    growing = true;
    const own = ++wanted;
    const [first, last] = [anchor, number].sort((a, b) => a - b);
    const state = first === last ? view.states[first] : await span(first, last);
    if (state && own === wanted) live(tokens.slice(first, last + 1).map((one) => one.dataset.token), state);
  }
  tokens.forEach((token, number) => {
    const begin = () => {
      anchor = number;
      growing = false;
    };
    token.addEventListener("click", (event) => (event.shiftKey ? reach(number) : begin()));
    token.addEventListener("keydown", (event) => {
      if (!event.shiftKey || !growing) begin();
    });
    // The focus has moved when the key comes up.
    token.addEventListener("keyup", (event) => {
      if (event.shiftKey && (event.key.startsWith("Arrow") || ["Home", "End"].includes(event.key))) reach(number);
    });
  });
}

function matrix(view, heading) {
  const { low, high } = view.matrix_ends;
  const [least, most] = view.signed ? ["blue", "red"] : ["no colour", "purple"];
  const head = make("tr", {}, make("td"), ...view.names.map((name) => make("th", { scope: "col" }, make("bdi", { translate: "no" }, name))));
  const rows = view.tokens.map((token, number) => {
    const name = make("th", { scope: "row" }, make("bdi", { translate: "no" }, token.text), " ", make("span", { class: "soft" }, token.probability));
    const cells = token.cells.map((cell) => {
      const one = make("td", { class: "cell", title: cell.said }, make("span", {}, cell.value));
      one.style.cssText = cell.colour;
      return one;
    });
    const later = Array.from({ length: view.names.length - cells.length }, () => make("td"));
    return make("tr", { "data-token": number }, name, ...cells, ...later);
  });
  const caption = `Each output token in a row, from ${low} (${least}) to ${high} (${most})`;
  const table = make("table", { class: "matrix" }, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...rows));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": heading ? `Matrix of scores, ${heading}` : "Matrix of scores" }, table);
}
