// How the explanation on screen is made again: the Python call, and the link to the page that edits it.

/** The Python call that makes the explanation of these settings. */
export function code({ text, method, unit, target, of, removal, seed, truncate }) {
  return call("explain", text, { method, unit, target, of, removal, seed: seed || undefined, truncate: truncate || undefined });
}

/** The Python call of a function: what it is about, and the options that are given. */
export function call(name, about, options) {
  const given = Object.entries(options).filter(([, value]) => value !== null && value !== undefined);
  return `raison.${name}(model, ${[python(about), ...given.map(([key, value]) => `${key}=${python(value)}`)].join(", ")})`;
}

/** The Python call that made an explanation, of a prediction or of what was written; null where what is known of it is
 * not enough. */
export function codeOf(explanation) {
  if (!isKnown(explanation)) return null;
  const { of, removal, seed } = explanation;
  if (explanation.statements) {
    const sources = Object.fromEntries(sourcesOf(explanation));
    const statements = explanation.statements.map(({ start, end }) => [start, end]);
    const { question, answer } = explanation;
    return call("cite", question, { sources, answer, statements, method: whole(explanation), removal, seed, ...citingOptions(explanation) });
  }
  if (explanation.tokens) {
    const { prompt, output, unit, earlier } = explanation;
    return call("explain", prompt, { method: whole(explanation), unit, of, removal, seed, output, earlier: earlier || undefined });
  }
  const { text, ...options } = requestOf(explanation);
  return call("explain", text, { ...options, select: explanation.notes.selected_by });
}

/** Whether an explanation tells all that was asked. Of parts that were named, of chats and templates of one's own, and of
 * places in a text or an output, not all is known here. */
function isKnown({ statements, supported, tokens, template, unit, prompt, units, place, answer, text }) {
  if (statements) return ["plain", "chat"].includes(template) && !supported?.length;
  if (unit === "part" || place || answer || (Array.isArray(text) && text.length > 2)) return false;
  if (!tokens) return true;
  if (tokens.some(({ against }) => against !== null && against !== undefined)) return false;
  const points = Array.from(prompt);
  for (const { start, end } of units) points.fill("", start, Math.min(end, points.length));
  return points.join("").trim() === "";
}

/** How sources were cited, as far as it is not as usual. */
function citingOptions({ template, within, sentences, sources, checks, draws }) {
  const none = within.every((row) => row.every((score) => score === null));
  const level = none && sentences.length > sources.length ? "source" : undefined;
  // What was cited before the number was recorded had the usual one, or none.
  const usual = draws === 16 ? undefined : draws;
  return { template, within: level, draws: checks.length ? (usual ?? undefined) : 0 };
}

/** What was asked for an explanation; the places of named parts are not among it. */
export function requestOf({ text, method, config, unit, target, against, of, removal, seed, outputs, truncated }) {
  const named = unit === "part" ? null : unit;
  // A number is no choice of one thing among others.
  const why = outputs === "number" ? null : against ? [target, against] : target;
  return { text, method: whole({ method, config }), unit: named, target: why, of, removal, seed, truncate: truncated > 0 || undefined };
}

/** The address of a server's page on which the text of an explanation is edited, with all else as it was and the same
 * model, served as `model`; null where what is known is not enough. */
export function editLink(explanation, model) {
  // The page has no field for a choice among a method's maps.
  if (!isKnown(explanation) || explanation.notes.selected_by) return null;
  const { unit, of } = explanation;
  const method = whole(explanation);
  const { removal, seed, statements } = explanation;
  const drawn = Object.entries(drawing({ removal: statements && removal === "delete" ? null : removal, seed }));
  if (explanation.statements) {
    const { question, answer } = explanation;
    const sources = sourcesOf(explanation).flatMap(([id, text]) => [["source", id], ["text", text]]);
    const options = Object.entries(citingOptions(explanation)).filter(([, value]) => value !== undefined);
    return `/#${new URLSearchParams([["face", "cite"], ["model", model], ["question", question], ["answer", answer], ["method", method], ...drawn, ...options, ...sources])}`;
  }
  if (explanation.tokens) {
    const { prompt, output } = explanation;
    return `/#${new URLSearchParams([...Object.entries({ face: "write", model, method, unit, of, text: prompt, output }), ...drawn])}`;
  }
  const { text, target, truncate } = requestOf(explanation);
  const asked = [["model", model], ...[text].flat().map((one) => ["text", one]), ["method", method], ["unit", unit], ...drawn];
  if (target !== null) asked.push(...[target].flat().map((one) => ["target", one]), ["of", of]);
  return `/#${new URLSearchParams(truncate ? [...asked, ["truncate", "true"]] : asked)}`;
}

/** How absent text was replaced, and the seed of draws, as far as it is not as usual. */
export function drawing({ removal, seed }) {
  return { ...(removal ? { removal } : {}), ...(seed ? { seed } : {}) };
}

/** Pairs of a source's name and its text. Places are counted in code points. */
function sourcesOf({ prompt, sources }) {
  const points = Array.from(prompt);
  return sources.map(({ name, start, end }) => [name, points.slice(start, end).join("")]);
}

/** A method with its settings. */
function whole({ method, config }) {
  const settings = Object.entries(config).map(([name, value]) => `${name}=${python(value)}`);
  return settings.length ? `${method}(${settings.join(", ")})` : method;
}

/** Overrides of the text's direction, with which code looks like other code, and ends of lines that an editor shows. */
const SPELLED_OUT = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const escaped = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** A value as Python writes it: JSON's form, which Python reads alike, its own constants, and strings as a tuple. */
function python(value) {
  const constant = { true: "True", false: "False", null: "None" }[String(value)];
  if (constant && typeof value !== "string") return constant;
  const strings = Array.isArray(value) && value.every((one) => typeof one === "string");
  // A tuple of one has a comma, without which it is a string.
  return strings ? `(${value.map(python).join(", ")}${value.length === 1 ? "," : ""})` : JSON.stringify(value).replace(SPELLED_OUT, escaped);
}
