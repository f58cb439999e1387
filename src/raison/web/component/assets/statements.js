// Citations, painted from their view in the same elements as their page of its own: the answer beside its sources.
import { liveCitations } from "../../../report/assets/cited.js";
import { make } from "./elements.js";
import { computed, legend } from "./map.js";

/** The article of a view under a heading. */
export function paintedCitations(view, heading) {
  const statements = view.statements.map((statement, number) =>
    make(
      "button",
      { type: "button", class: "statement", "data-statement": number, "aria-pressed": "false" },
      make("bdi", { dir: "auto", translate: "no" }, statement.text),
      statement.origin ? make("small", {}, statement.origin) : null,
    ),
  );
  const ends = { lowest: "against it", low: view.low, high: view.high, highest: "the statement rests on it" };
  const article = make(
    "article",
    { class: "raison citations", "aria-label": heading || "Answer and sources" },
    heading ? make("p", { class: "heading" }, heading) : null,
    view.question ? make("p", { class: "verdict", dir: "auto" }, make("b", {}, view.question)) : null,
    make("p", { class: "goal" }, `Explained: ${view.goal}. Point at a statement or a source, or tap it.`),
    make(
      "div",
      { class: "pair" },
      make("section", { class: "statements", "aria-label": named("Answer", heading) }, make("h2", {}, "Answer"), ...statements),
      make("section", { class: "sources", "aria-label": named("Sources", heading) }, make("h2", {}, "Sources"), ...view.sources.map(source)),
    ),
    legend({ ends, strip: view.strip }),
    table(view, heading),
    computed(view.facts),
  );
  liveCitations(article, view.states);
  return article;
}

function source({ name, pieces }, number) {
  const parts = pieces.map(({ text, sentence }) => (sentence === null ? text : make("span", { class: "sentence-of", "data-sentence": sentence }, text)));
  const heading = make("h3", {}, make("bdi", { translate: "no" }, name), " ", make("span", { class: "told" }));
  return make("div", { class: "source", role: "group", "aria-label": name, "data-source": number, tabindex: "0" }, heading, make("p", { dir: "auto", lang: "", translate: "no" }, ...parts));
}

/** Two articles on one page have parts of different names. */
function named(part, heading) {
  return heading ? `${part}, ${heading}` : part;
}

function table(view, heading) {
  const head = make("tr", {}, make("td"), ...view.sources.map(({ name }) => make("th", { scope: "col" }, make("bdi", { translate: "no" }, name))));
  const rows = view.statements.map(({ short, cells }) => {
    const told = cells.map(([said, colour]) => {
      const one = make("td", { class: "cell" }, said);
      one.style.cssText = colour;
      return one;
    });
    return make("tr", {}, make("th", { scope: "row" }, make("bdi", { translate: "no" }, short)), ...told);
  });
  const cited = make("table", { class: "cited" }, make("caption", {}, "Statements in rows, sources in columns"), make("thead", {}, head), make("tbody", {}, ...rows));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": named("All scores", heading) }, cited);
}
