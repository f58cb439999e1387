// A map: an explanation painted from its view, in the same elements as every other page of explanations.
import { liveUnits, stopAt } from "../../../report/assets/units.js";
import { make } from "./elements.js";

/** Overrides of the text's direction, with which one word looks like another. */
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;

/** The article of a view. `choose(span, element)` is called for a unit that is clicked or entered; null for none. */
export function painted(view, heading, choose) {
  const told = view.verdict;
  const article = make(
    "article",
    { class: "raison", "aria-label": heading || "Explanation" },
    heading ? make("p", { class: "heading" }, heading) : null,
    make("p", { class: "verdict" }, `${told.lead} `, make("b", {}, make("bdi", {}, told.said)), ` ${told.rest}`),
    make("p", { class: "goal" }, `Explained: ${view.goal}, ${view.unit} by ${view.unit}, with ${view.made_by}`),
    ...passages(view, choose),
    legend(view),
    ...notes(view),
    ranking(view),
    view.rest ? make("p", { class: "rest" }, view.rest) : null,
    computed(view.facts),
  );
  liveUnits(article);
  return article;
}

/** The texts of a view; `choose` as in `painted`. */
export function passages(view, choose) {
  return view.passages.flatMap((passage, segment) => {
    const text = make("div", { class: `text ${view.unit}`, dir: "auto", lang: "", translate: "no" });
    for (const span of passage.spans) {
      if (span.units.length) text.append(unit({ ...span, segment }, choose));
      else text.append(...boxed(span.parts));
    }
    return [passage.label ? make("p", { class: "label" }, passage.label) : null, text];
  });
}

function unit(span, choose) {
  const string = span.parts.map((part) => part.text).join("");
  const classes = ["unit", span.colour ? "" : "none", span.unread ? "unread" : ""].filter(Boolean).join(" ");
  const attributes = {
    class: classes,
    "data-units": span.units.join(" "),
    "data-name": span.name || null,
    role: choose ? "button" : "group",
    title: span.said,
    "aria-label": `${string.trim()}: ${span.said}`,
  };
  const element = make("span", attributes, ...boxed(span.parts));
  element.style.cssText = span.colour;
  if (choose) {
    element.addEventListener("click", () => choose(span, "edit"));
    element.addEventListener("keydown", (event) => {
      const wish = { Enter: "edit", " ": "edit", Delete: "delete", Backspace: "delete" }[event.key];
      if (!wish) return;
      event.preventDefault();
      choose(span, wish);
    });
  }
  return element;
}

function boxed(parts) {
  return parts.map((part) => {
    const text = part.text.replace(TURNING, "\ufffd");
    if (!part.inside) return text;
    const ends = `${part.opens ? " opens" : ""}${part.closes ? " closes" : ""}`;
    return make("span", { class: `answer${ends}` }, text);
  });
}

/** Give the focus to a unit of an article by its number, or to the last one. */
export function focusUnit(article, number) {
  const units = [...article.querySelectorAll(".unit")];
  const unit = units[Math.min(number, units.length - 1)];
  if (!unit) return;
  stopAt(unit, units);
  unit.focus();
}

/** The ends of the scale and what they mean. */
export function legend(view) {
  const { lowest, low, high, highest } = view.ends;
  const strip = make("span", { class: "strip" });
  strip.style.background = view.strip;
  return make(
    "div",
    { class: "legend" },
    make("span", { class: "soft" }, lowest),
    make("span", { class: "low" }, low),
    strip,
    make("span", { class: "high" }, high),
    make("span", { class: "soft" }, highest),
  );
}

function notes(view) {
  const boxes = view.certainty
    ? make("p", { class: "goal boxed" }, make("span", { class: "answer opens closes" }, "boxed"), ` ${view.certainty}`)
    : null;
  const unread = view.unread
    ? make("p", { class: "goal boxed" }, make("span", { class: "unread" }, "underlined"), ` unknown to the model: ${view.unread}`)
    : null;
  return [boxes, unread, ...view.cautions.map((said) => make("p", { class: "warning" }, `Warning: ${said}.`))];
}

function ranking(view) {
  const body = make("tbody");
  for (const bar of view.bars) {
    const axis = make("span", { class: view.signed ? "axis" : "axis amount" });
    if (bar.colour) {
      const length = make("span", { class: `bar ${bar.side}` });
      length.style.cssText = bar.colour;
      length.style.width = `${((view.signed ? 50 : 100) * bar.length).toFixed(1)}%`;
      axis.append(length);
    }
    const name = make("th", { scope: "row" }, make("bdi", { translate: "no" }, bar.name));
    body.append(make("tr", { "data-unit": bar.unit }, make("td", {}, bar.value), make("td", {}, axis), name));
  }
  return make("table", { class: "top" }, make("caption", {}, `Strongest ${view.unit}s`), body);
}

/** How it was computed, folded. */
export function computed(facts) {
  const list = make("dl");
  for (const [name, fact] of facts) list.append(make("dt", {}, name), make("dd", {}, fact));
  return make("details", {}, make("summary", {}, "How this was computed"), list);
}
