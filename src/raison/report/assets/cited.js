/**
 * A statement under the pointer or the focus colours the sources and their sentences, a source the statements; a click
 * or tap holds one. `data` has a palette, and for each statement the shades of sources and sentences and what is said.
 */
export function liveCitations(article, data) {
  const statements = [...article.querySelectorAll(".statement")];
  const sources = [...article.querySelectorAll(".source")];
  const sentences = [...article.querySelectorAll("[data-sentence]")];
  let held = statements[0];

  function colour(element, shade) {
    // What the page came with: its sheet's, not the element's own.
    delete element.dataset.style;
    element.style.cssText = shade === null ? "" : data.palette[shade];
  }

  function byStatement(i) {
    for (const statement of statements) colour(statement, null);
    sources.forEach((source, j) => {
      colour(source, data.scores[i][j]);
      source.querySelector(".told").textContent = data.told[i][j];
    });
    for (const sentence of sentences) colour(sentence, data.within[i][Number(sentence.dataset.sentence)]);
  }

  function bySource(j) {
    statements.forEach((statement, i) => colour(statement, data.scores[i][j]));
    for (const sentence of sentences) colour(sentence, null);
    sources.forEach((source, other) => {
      colour(source, null);
      source.querySelector(".told").textContent = other === j ? "coloured: what rests on it" : "";
    });
  }

  function paint(element) {
    if (element.dataset.statement === undefined) bySource(Number(element.dataset.source));
    else byStatement(Number(element.dataset.statement));
  }

  function hold(element) {
    held = element;
    for (const statement of statements) statement.setAttribute("aria-pressed", String(statement === held));
    for (const source of sources) source.classList.toggle("held", source === held);
    paint(held);
  }

  for (const element of [...statements, ...sources]) {
    element.addEventListener("mouseenter", () => paint(element));
    element.addEventListener("mouseleave", () => paint(held));
    element.addEventListener("focus", () => paint(element));
    element.addEventListener("blur", () => paint(held));
    element.addEventListener("click", () => hold(element));
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && element.dataset.source !== undefined) hold(element);
    });
  }
  hold(held);
}
