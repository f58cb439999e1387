// The component on a page, with a model as anywidget gives it: values, changes, and messages, which the server answers.
import component from "/assets/component.js";

const EDITED = 300;
const TOKEN = "raison-token";
const here = document.getElementById("here");
const state = document.getElementById("state");
const client = Array.from(crypto.getRandomValues(new Uint32Array(4)), (number) => number.toString(36)).join("");

/** The token that the address holds, which is then kept for this tab alone. */
function token() {
  const held = new URLSearchParams(location.hash.slice(1)).get("token");
  if (held) {
    sessionStorage.setItem(TOKEN, held);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(TOKEN);
}

async function asked(path, options = {}) {
  const own = { "content-type": "application/json", "x-raison-client": client };
  const known = token();
  if (known) own.authorization = `Bearer ${known}`;
  const answer = await fetch(path, { ...options, headers: own });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error);
  return told;
}

/** A model as anywidget gives it. What is explained of a text that is edited meanwhile is not waited for. */
function modelOf(values) {
  const listeners = new Map();
  const open = new Set();
  const emit = (name, value) => [...(listeners.get(name) ?? [])].forEach((listener) => listener(value));

  async function send({ id, ask, body }) {
    const leaving = new AbortController();
    if (ask === "explain") open.add(leaving);
    try {
      const answer = await asked(`/api/${ask}`, { method: "POST", body: JSON.stringify(body), signal: leaving.signal });
      emit("msg:custom", { id, answer });
    } catch (error) {
      // The component has to know of the edit before it hears that nothing came of what was asked.
      const rest = leaving.signal.aborted ? EDITED : 0;
      setTimeout(() => emit("msg:custom", { id, error: error.message }), rest);
    } finally {
      open.delete(leaving);
    }
  }

  function set(name, value) {
    if (JSON.stringify(values[name]) === JSON.stringify(value)) return;
    values[name] = value;
    for (const leaving of open) leaving.abort();
    emit(`change:${name}`, value);
  }

  return {
    get: (name) => values[name],
    set,
    send,
    save_changes: () => {},
    on: (name, listener) => listeners.set(name, [...(listeners.get(name) ?? []), listener]),
    off: (name, listener) => listeners.set(name, (listeners.get(name) ?? []).filter((one) => one !== listener)),
  };
}

const FIRST = { 1: "A modest pleasure with ease", 2: ["A modest pleasure.", "Not a pleasure."] };

try {
  const offered = await asked("/api/models");
  const models = offered.models.filter((model) => model.outputs !== "text" && model.strings in FIRST);
  if (models.length === 0) throw new Error("The page explains predictions of texts and pairs; this server's models are at /api/explain.");
  const text = FIRST[models[0].strings];
  const values = { models, model_name: models[0].name, text, method: "auto", unit: "word", target: null, of: null, linked: true };
  state.remove();
  component.render({ model: modelOf(values), el: here });
} catch (error) {
  state.textContent = error.message;
}
