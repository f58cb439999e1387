// The bar that changes one word: exchange it, delete it, add another before or after it.
import { button, field, make } from "./elements.js";
import { added, exchanged, withoutSpan } from "./texts.js";

/** The bar for a span of a text. `change(text)` is called with the new text, `close()` when it is left. */
export function wordBar(text, span, change, close) {
  const own = span.parts.map((part) => part.text).join("");
  const input = make("input", { type: "text", value: own, dir: "auto", lang: "", autocomplete: "off", spellcheck: "false" });
  const exchange = () => change(input.value.trim() ? exchanged(text, span, input.value) : withoutSpan(text, span));
  const grow = (where) => () => {
    if (input.value.trim() && input.value !== own) change(added(text, span, input.value, where));
    else input.focus();
  };
  const bar = make(
    "form",
    { class: "raison word-bar", "aria-label": `Change ${own.trim()}` },
    field("Word", input),
    make("button", { type: "submit", class: "out" }, "Exchange"),
    button("Delete", () => change(withoutSpan(text, span))),
    button("Add before", grow("before")),
    button("Add after", grow("after")),
    button("Close", close),
  );
  bar.addEventListener("submit", (event) => {
    event.preventDefault();
    exchange();
  });
  bar.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  return { bar, input };
}
