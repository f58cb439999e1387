// Elements of the page. Whatever is said goes in as text, never as markup.

/** An element with its attributes (those that are null or false are left out), listeners ("onclick") and children. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
}

/** A button that does something here. */
export function button(said, onclick, attributes = {}) {
  return make("button", { type: "button", class: "out", ...attributes, onclick }, said);
}

let fields = 0;

/** A control with its label. */
export function field(label, control, attributes = {}) {
  const id = `raison-field-${++fields}`;
  control.setAttribute("id", id);
  return make("div", { class: "field", ...attributes }, make("label", { for: id }, label), control);
}

/** A labelled list to choose from; `options` are pairs of a value and what is said for it. */
export function choice(label, options, value, onchange) {
  const select = make("select", { onchange: () => onchange(select.value) });
  for (const [own, said] of options) select.append(make("option", { value: own }, said));
  select.value = value;
  return field(label, select);
}

/** The element that has the focus, also inside a shadow tree. */
export function focused(root) {
  return root.getRootNode().activeElement;
}

/** New content in the place of the old: the same control keeps the focus, and what was unfolded stays so. */
export function exchangeContent(place, content) {
  const controls = () => [...place.querySelectorAll("select, textarea, input, button, summary")];
  const folds = () => [...place.querySelectorAll("details")];
  const held = controls().indexOf(focused(place));
  const open = folds().map((fold) => fold.open);
  place.replaceChildren(content);
  folds().forEach((fold, number) => {
    fold.open = open[number] ?? false;
  });
  if (held >= 0) controls()[held]?.focus();
}
