// What is asked: the text, the model, the method, what is explained, and what it is compared with.
import { choice, field, make } from "./elements.js";
import { stringsOf, withString } from "./texts.js";

export const QUANTITIES = ["probability", "logit", "log_odds", "margin", "log_probability"];
const PREDICTED = "";

/** The form of the settings. `change(settings, typed)` is called with what becomes of them. */
export function settingsForm(settings, models, change) {
  const facts = models.find((model) => model.name === settings.model) ?? models[0];
  const set = (changes) => change({ ...settings, ...changes }, false);
  const form = make("form", { class: "raison asking", "aria-label": "What is explained" });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.append(...textAreas(settings.text, (text) => change({ ...settings, text }, true)));
  const row = make("div", { class: "row" });
  if (models.length > 1) row.append(choice("Model", names(models.map((model) => model.name)), settings.model, (model) => set(moved(settings, models, model))));
  row.append(choice("Method", methodsOf(facts, settings.method), settings.method, (method) => set({ method })));
  row.append(choice("Units", facts.units.map((unit) => [unit, `${unit}s`]), settings.unit, (unit) => set({ unit })));
  if (facts.outputs !== "number") row.append(...targets(settings, facts, set));
  row.append(...drawingChoices(settings, facts.removals, set));
  // Offered with the refusal of a text that is too long; from then on it can be taken back here.
  if (settings.truncate) row.append(choice("Long texts", [["", "are refused"], ["cut", "are cut off"]], "cut", (value) => set({ truncate: value === "cut" })));
  form.append(row);
  return form;
}

/** The text areas of a text, one for each of its strings. */
function textAreas(text, typed, label = "Text") {
  const areas = [];
  const strings = stringsOf(text);
  strings.forEach((string, segment) => {
    const area = make("textarea", { rows: "2", dir: "auto", lang: "", spellcheck: "false" });
    area.value = string;
    area.addEventListener("input", () => {
      const now = areas.map((one) => one.value);
      typed(withString(Array.isArray(text) ? now : now[0], segment, area.value));
    });
    areas.push(area);
  });
  const said = (segment) => (strings.length > 1 ? `${label} ${segment + 1}` : label);
  return areas.map((area, segment) => field(said(segment), area, { class: "field long" }));
}

/** The form of what the map stands beside. `change(compared)` is called with what becomes of it. */
export function comparisonForm(compared, settings, models, change) {
  const facts = models.find((model) => model.name === settings.model) ?? models[0];
  const sorts = [
    ["before", `the ${"text" in settings ? "text" : "answer"} before the change`],
    ["nothing", "nothing"],
    ["method", "another method"],
    models.length > 1 ? ["model", "another model"] : null,
    facts.outputs !== "number" && facts.classes.length > 1 ? ["target", "another target"] : null,
    "text" in settings ? ["text", "another text"] : null,
  ].filter(Boolean);
  const first = {
    method: () => facts.methods.find((name) => name !== settings.method),
    model: () => models.find((model) => model.name !== settings.model)?.name,
    target: () => facts.classes.find((name) => name !== settings.target),
    text: () => settings.text,
  };
  const row = make("form", { class: "raison comparing", "aria-label": "Comparison" });
  row.addEventListener("submit", (event) => event.preventDefault());
  const sort = (chosen) => change({ with: chosen, value: first[chosen]?.() ?? null }, false);
  row.append(choice("Beside it", sorts, compared.with, sort));
  const than = (value) => change({ ...compared, value }, false);
  if (compared.with === "method") row.append(choice("Method", methodsOf(facts, compared.value), compared.value, than));
  if (compared.with === "model") row.append(choice("Model", names(models.map((model) => model.name)), compared.value, than));
  if (compared.with === "target") row.append(choice("Why", names(facts.classes), compared.value, than));
  if (compared.with === "text") row.append(...textAreas(compared.value, (text) => change({ ...compared, value: text }, true), "Other text"));
  return row;
}

/** How absent text is replaced, if there is a choice, and a seed that is not the usual one. */
export function drawingChoices({ removal, seed }, removals, set) {
  const offered = [...new Set([...removals, ...(removal ? [removal] : [])])];
  const parts = [];
  if (offered.length > 1 || removal) parts.push(choice("Removal", [["", "by default"], ...names(offered)], removal ?? "", (value) => set({ removal: value || null })));
  if (seed) parts.push(choice("Seed", names(["0", String(seed)]), String(seed), (value) => set({ seed: Number(value) })));
  return parts;
}

function targets(settings, facts, set) {
  const [target, against] = Array.isArray(settings.target) ? settings.target : [settings.target, null];
  const both = (why, not) => set({ target: why && not && why !== not ? [why, not] : why || null });
  const parts = [choice("Why", [[PREDICTED, "what is predicted"], ...names(facts.classes)], target ?? PREDICTED, (why) => both(why, against))];
  if (target && facts.classes.length > 1) {
    const others = names(facts.classes.filter((name) => name !== target));
    parts.push(choice("and not", [[PREDICTED, "no other"], ...others], against ?? PREDICTED, (not) => both(target, not)));
  }
  const of = [["", "by default"], ...QUANTITIES.map((name) => [name, name.replace("_", "-")])];
  parts.push(choice("Quantity", of, settings.of ?? "", (value) => set({ of: value || null })));
  return parts;
}

/** The settings for another model: what that model lacks is left out. */
export function moved(settings, models, name) {
  const facts = models.find((model) => model.name === name);
  const has = [settings.target].flat().every((target) => target === null || facts.classes.includes(target));
  const method = facts.methods.includes(settings.method.split("(")[0]) ? settings.method : "auto";
  const removal = facts.removals.includes(settings.removal) ? settings.removal : null;
  return { model: name, method, target: has ? settings.target : null, of: facts.outputs === "number" ? null : settings.of, removal };
}

/** The methods that work on a model, the chosen one among the first. */
export function methodsOf(facts, current) {
  const others = facts.methods.filter((name) => name !== "auto" && name !== current);
  return names([...new Set(["auto", current, ...others])]);
}

/** Options that are said as they are named. */
export function names(values) {
  return values.map((value) => [value, value]);
}
