// How the explanation on screen is made again: the Python call, and the link to the page that edits it.

/** The Python call that makes the explanation of these settings. */
export function code({ text, method, unit, target, of, truncate }) {
  return call("explain", text, { method, unit, target, of, truncate: truncate || undefined });
}

/** The Python call of a function: what it is about, and the options that are given. */
export function call(name, about, options) {
  const given = Object.entries(options).filter(([, value]) => value !== null && value !== undefined);
  return `raison.${name}(model, ${[python(about), ...given.map(([key, value]) => `${key}=${python(value)}`)].join(", ")})`;
}

/** The Python call that made an explanation, of a prediction or of what was written. */
export function codeOf(explanation) {
  const { method, of, removal, seed } = explanation;
  if (explanation.statements) {
    const sources = Object.fromEntries(sourcesOf(explanation));
    return call("cite", explanation.question, { sources, answer: explanation.answer, method: whole(explanation), removal, seed });
  }
  if (explanation.tokens) {
    const unit = explanation.unit === "part" ? null : explanation.unit;
    return call("explain", explanation.prompt, { method: whole(explanation), unit, of, removal, seed, output: explanation.output });
  }
  const { text, ...options } = requestOf(explanation);
  return call("explain", text, options);
}

/** What was asked for an explanation; the places of named parts are not among it. */
export function requestOf({ text, method, config, unit, target, against, of, removal, seed, outputs, truncated }) {
  const named = unit === "part" ? null : unit;
  // A number is no choice of one thing among others.
  const why = outputs === "number" ? null : against ? [target, against] : target;
  return { text, method: whole({ method, config }), unit: named, target: why, of, removal, seed, truncate: truncated > 0 || undefined };
}

/** The address of a server's page on which the text of an explanation is edited. */
export function editLink(explanation) {
  if (explanation.statements) {
    const { question, answer } = explanation;
    const sources = sourcesOf(explanation).flatMap(([id, text]) => [["source", id], ["text", text]]);
    return `/#${new URLSearchParams([["face", "cite"], ["question", question], ["answer", answer], ...sources])}`;
  }
  if (explanation.tokens) {
    const { prompt, output } = explanation;
    return `/#${new URLSearchParams({ face: "write", text: prompt, output })}`;
  }
  const cut = explanation.truncated > 0 ? [["truncate", "true"]] : [];
  return `/#${new URLSearchParams([...[explanation.text].flat().map((text) => ["text", text]), ...cut])}`;
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

/** A value as Python writes it: JSON's form, which Python reads alike, its own constants, and strings as a tuple. */
function python(value) {
  const constant = { true: "True", false: "False", null: "None" }[String(value)];
  if (constant && typeof value !== "string") return constant;
  const strings = Array.isArray(value) && value.every((one) => typeof one === "string");
  return strings ? `(${value.map(python).join(", ")})` : JSON.stringify(value);
}
