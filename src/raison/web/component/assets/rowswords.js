// What all texts of a row come to: slices with their accuracy, the words of each class, the words that decide.
import { button, make } from "./elements.js";
import { counted, dataTable, decimal, estimate, sizeBar, upper } from "./tables.js";

const BY = { label: "Label", prediction: "Prediction", units: "Length", confidence: "Confidence" };
const PARTS = ["first", "second", "third", "fourth", "last"];

/** Slices with their accuracy; `look(filters)` shows the texts of one. */
export function slicesTable(slices, look) {
  const columns = [
    { said: "By", cell: (one) => BY[one.by] },
    { said: "Slice", cell: (one) => button(sliceName(one), () => look(asTexts(one.query))) },
    { said: "Texts", number: true, cell: (one) => String(one.texts) },
    { said: "Accuracy (95 % interval)", number: true, cell: (one) => (one.accuracy ? accuracyOf(one.accuracy) : null) },
  ];
  return dataTable("How often the model is right, by slices of the texts", columns, slices);
}

/** An accuracy in words. */
export function accuracyOf({ share, low, high }) {
  return estimate(share, low, high, 2);
}

function sliceName({ by, query }) {
  const values = Object.values(query);
  if (by === "confidence") return `${decimal(values[0])} to ${decimal(values[1])}`;
  return by === "units" ? `${values[0]} to ${values[1]}` : values[0];
}

function asTexts(query) {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]));
}

/** The words of a row; `look(filters)` shows the texts of one. */
export function wordsView(told, unit, texts, look) {
  const about = told.texts < texts ? `Of the first ${told.texts.toLocaleString("en")} texts.` : null;
  return make("div", {}, about && make("p", { class: "goal" }, about), decisiveTable(told, unit, look), ...told.classes.map((one) => ofClass(one, unit, look)));
}

function decisiveTable(told, unit, look) {
  const said = `A ${unit} decides a text if its score alone is the highest there and above zero. These decide more texts than by chance, with Holm's correction at ${told.level} over all ${unit}s in five texts or more. What decides may be right to: whether it should is for people to say.`;
  if (!told.shortcuts.length) return make("section", {}, make("h2", {}, "What decides"), make("p", { class: "goal" }, said), make("p", {}, `No ${unit} does.`));
  const columns = [
    { said: upper(unit), cell: (one) => button(one.word, () => look({ top: one.word })) },
    { said: "Decides", number: true, cell: (one) => counted(one.decided, "text") },
    { said: "By chance", number: true, cell: (one) => decimal(one.expected, 1) },
    { said: "p, corrected", number: true, cell: (one) => small(one.corrected) },
  ];
  const more = told.found > told.shortcuts.length ? `, the surest ${told.shortcuts.length} of ${told.found}` : "";
  return make("section", {}, make("h2", {}, "What decides"), make("p", { class: "goal" }, said), dataTable(`${upper(unit)}s that decide more texts than by chance${more}`, columns, told.shortcuts));
}

function ofClass(one, unit, look) {
  const largest = Math.max(0, ...[...one.words, ...one.sequences].map((word) => Math.abs(word.mean)));
  const columns = (named, control) => [
    { said: named, cell: control },
    { said: "Size", cell: (word) => sizeBar(word.mean, largest) },
    { said: "Mean score (95 % interval)", number: true, cell: (word) => estimate(word.mean, word.low, word.high) },
    { said: "Texts", number: true, cell: (word) => String(word.texts) },
  ];
  const parts = make("section", { "aria-label": `Explained: ${one.target}` }, make("h2", {}, `Explained: ${one.target}, ${counted(one.texts, "text")}`));
  if (one.words.length) parts.append(dataTable(`${upper(unit)}s with the largest mean scores`, columns(upper(unit), (word) => button(word.word, () => look({ word: word.word }))), one.words));
  if (one.sequences.length) parts.append(dataTable("Sequences of two", columns("Sequence", (word) => make("bdi", {}, word.word)), one.sequences));
  if (one.parts.length) parts.append(placesTable(one.parts));
  return parts;
}

function placesTable(parts) {
  const rows = parts.map((part, place) => ({ ...part, place }));
  const columns = [
    { said: "Fifth", cell: (part) => PARTS[part.place] },
    { said: "Share (95 % interval)", number: true, cell: (part) => estimate(part.mean, part.low, part.high, 2) },
  ];
  return dataTable("Where in a text the scores are: the share of their sizes; evenly it is 0.20", columns, rows);
}

function small(p) {
  return p < 0.0001 ? p.toExponential(0).replace("-", "\u2212") : decimal(p, 4);
}
