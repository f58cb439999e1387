// The component on the server's page: its model answers over HTTP.
import component from "./component.js";
import { answered, posted } from "./connection.js";

const FIRST = { 1: "A modest pleasure with ease", 2: ["A modest pleasure.", "Not a pleasure."] };
const PROMPT = "The capital of France is";

/** A model as anywidget gives it, whose messages are requests. */
function servedModel(values) {
  const listeners = new Map();
  const running = new Map();
  const emit = (name, value) => [...(listeners.get(name) ?? [])].forEach((listener) => listener(value));

  async function send({ id, ask, body, drop }) {
    if (drop) return running.get(id)?.abort();
    const control = new AbortController();
    running.set(id, control);
    try {
      emit("msg:custom", { id, answer: await posted(`/api/${ask}`, body, control.signal) });
    } catch (error) {
      emit("msg:custom", { id, error: error.message, truncatable: error.truncatable, unreached: error.unreached });
    } finally {
      running.delete(id);
    }
  }

  return {
    get: (name) => values[name],
    set(name, value) {
      if (JSON.stringify(values[name]) === JSON.stringify(value)) return;
      values[name] = value;
      emit(`change:${name}`, value);
    },
    save_changes: () => {},
    on: (name, listener) => listeners.set(name, [...(listeners.get(name) ?? []), listener]),
    off: (name, listener) => listeners.set(name, (listeners.get(name) ?? []).filter((one) => one !== listener)),
    send,
  };
}

const predicts = (model) => model.outputs !== "text" && model.strings in FIRST;
const writes = (model) => model.outputs === "text";
/** What the page can be asked, and of which models. */
const FACES = [
  { name: "predict", said: "Predictions", fits: predicts },
  { name: "write", said: "Written answers", fits: writes },
  { name: "cite", said: "Answers and sources", fits: writes },
];

/** What the component is given: the models, and settings to begin with. */
function traits(face, models, limits) {
  const [first] = models;
  const text = face === "predict" ? FIRST[first.strings] : PROMPT;
  const settings = { model_name: first.name, text, method: first.advised ?? "auto", unit: "word", target: null, of: null, removal: null, seed: 0, truncate: false, output: "", max_new_tokens: 10 };
  return { ...settings, models, limits, face, linked: true, drops: true };
}

/** Shows the face that the address names, or the first one; again whenever the address names another. */
function open({ models, limits, version }) {
  const faces = FACES.map((face) => ({ ...face, models: models.filter(face.fits) })).filter((face) => face.models.length);
  if (!faces.length) throw new Error("The page explains predictions of texts and pairs, and written answers; this server's models are at /api/explain.");
  const place = document.getElementById("here");
  const links = faces.map(({ name, said }) => Object.assign(document.createElement("a"), { href: `#face=${name}`, textContent: said }));
  let shown;
  let close = () => {};
  function show() {
    const wanted = new URLSearchParams(location.hash.slice(1)).get("face") ?? "predict";
    const face = faces.find(({ name }) => name === wanted) ?? faces[0];
    if (face === shown) return;
    close();
    shown = face;
    links.forEach((link, number) => (faces[number] === face ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")));
    close = component.render({ model: servedModel(traits(face.name, face.models, limits)), el: place });
  }
  const nav = document.getElementById("faces");
  if (faces.length > 1) nav.replaceChildren(...links);
  else nav.remove();
  // Before the component listens: what is for another face is not for this one.
  addEventListener("hashchange", show);
  show();
  document.getElementById("version").textContent = `raison ${version}`;
}

const state = document.getElementById("state");
try {
  open(await answered("/api/models"));
  state.remove();
} catch (error) {
  state.textContent = error.message;
}
