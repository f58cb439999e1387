// Which texts of a run are looked at: the run, the row of its table, and what the texts have to be.
import { choice, field, make } from "./elements.js";
import { upper } from "./tables.js";

/** What a filter may name, beside the run and its row; the server's parameters have the same names. */
export const FILTERS = ["label", "prediction", "wrong", "word", "top", "least", "most", "surer", "unsurer", "above", "below"];

/** The lists by which a run and a row of its table are chosen. `change(state)` is told what becomes of them. */
export function runForm(runs, state, change) {
  const form = quiet(make("form", { class: "raison row", "aria-label": "Run" }));
  const run = runs.find((one) => one.run === state.run);
  const named = (one) => [one.run, `${one.run} (${one.model}, ${one.data})`];
  if (runs.length > 1 || state.run) form.append(choice("Run", runs.map(named), state.run, (name) => change(firstOf(runs.find((one) => one.run === name)))));
  const rows = run.rows.flatMap((row) => row.seeds.map((seed) => [`${row.label}\n${seed}`, row.seeds.length > 1 ? `${row.label}, seed ${seed}` : row.label]));
  if (rows.length > 1) {
    form.append(choice("Method", rows, `${state.row}\n${state.seed}`, (value) => {
      const [row, seed] = value.split("\n");
      change({ run: state.run, row, seed });
    }));
  }
  return form;
}

/** A run's first row; a random one, which is there to compare with, comes last. */
export function firstOf(run) {
  const row = run.rows.find((one) => one.method !== "random") ?? run.rows[0];
  return { run: run.run, row: row.label, seed: String(row.seeds[0]) };
}

/** Whether the model wrote what is explained. */
export function isWritten(run) {
  return ["output", "answer"].includes(run.gives);
}

/** The form of the filters. `names` are {label, prediction}: the values that occur. `change(filters, typed)`. */
export function filterForm(run, state, names, change) {
  const form = quiet(make("form", { class: "raison row filter", "aria-label": "Which texts" }));
  const set = (name, value, typed = false) => change({ [name]: value || undefined }, typed);
  const among = (name, said) => choice(said, [["", "any"], ...names[name].map((value) => [value, value])], state[name] ?? "", (value) => set(name, value));
  const typing = (name, said, attributes) => {
    const input = make("input", { ...attributes, value: state[name] ?? null });
    input.addEventListener("input", () => input.reportValidity() && set(name, input.value.trim(), true));
    return field(said, input);
  };
  if (run.labelled) {
    const wrong = make("input", { type: "checkbox" });
    wrong.checked = state.wrong === "true";
    wrong.addEventListener("change", () => set("wrong", wrong.checked ? "true" : ""));
    form.append(field("Wrong only", wrong, { class: "field check" }), among("label", "Label"));
  }
  if (!isWritten(run)) form.append(among("prediction", run.gives === "number" ? "Output" : "Prediction"));
  if (run.explained) form.append(typing("word", "With the word", { type: "text", autocapitalize: "off" }));
  if (run.explained && !isWritten(run)) {
    const [from, to] = run.gives === "number" ? [["above", "Value from"], ["below", "Value to"]] : [["surer", "Confidence from"], ["unsurer", "Confidence to"]];
    const ends = run.gives === "number" ? {} : { min: "0", max: "1" };
    form.append(typing("top", "Decided by", { type: "text", autocapitalize: "off" }));
    form.append(typing(...from, { type: "number", ...ends, step: "any" }), typing(...to, { type: "number", ...ends, step: "any" }));
  }
  form.append(typing("least", `${upper(run.unit)}s from`, { type: "number", min: "0" }));
  form.append(typing("most", `${upper(run.unit)}s to`, { type: "number", min: "0" }));
  return form;
}

function quiet(form) {
  form.addEventListener("submit", (event) => event.preventDefault());
  return form;
}
