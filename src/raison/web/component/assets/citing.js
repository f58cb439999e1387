// A question and its sources in; the answer's statements out, each with what it rests on.
import { button, choice, exchangeContent, field, make } from "./elements.js";
import { remembered } from "./requests.js";
import { addressOf, beside, comparedIn } from "./history.js";
import { comparisonForm, drawingChoices, methodsOf, names } from "./form.js";
import { area, count } from "./messages.js";
import { paintedCitations } from "./statements.js";
import { call, drawing } from "./reproduce.js";
import { Panel } from "./panel.js";

const QUESTIONS = 20;
const EXAMPLE = {
  question: "Who founded the port of Varnum?",
  sources: [
    { id: "port", text: "Captain Ilse Brandt founded the port of Varnum in 1874. The harbour froze every winter." },
    { id: "tea", text: "The tea house opened in 1921. It stands by the river. Guests praise its scones." },
    { id: "owl", text: "Owls hunt at night. Their feathers make no sound." },
  ],
  answer: "",
  method: "auto",
  within: "sentence",
  template: "",
  draws: 16,
  removal: "",
  seed: 0,
  tokens: 30,
};

export class Citing extends Panel {
  constructor(model, el) {
    super(model, el, {}, ["asking", "comparing", "status", "maps", "past"]);
    this.cite = remembered((request) => this.talk.ask("cite", request), QUESTIONS);
    this.refresh = this.refreshing(() => this.abandon());
    this.settings = { ...structuredClone(EXAMPLE), model: model.get("models")[0].name };
    this.initial = structuredClone(this.settings);
    const found = this.found();
    if (found) this.open(found);
    else this.showForms();
  }

  about({ question, sources, answer }) {
    return [question, sources, answer];
  }

  stateOf(hash) {
    return citingFromHash(hash);
  }

  addressOf(settings) {
    return citingToHash(settings, this.compared);
  }

  showForms() {
    const models = this.model.get("models");
    const facts = models.find((one) => one.name === this.settings.model) ?? models[0];
    const { question, sources, answer, method, within, template, draws, removal, seed, tokens } = this.settings;
    const set = (changes, again) => {
      Object.assign(this.settings, changes);
      if (again) this.showForms();
    };
    const row = make("div", { class: "row" });
    if (models.length > 1) row.append(choice("Model", names(models.map((one) => one.name)), facts.name, (model) => set({ model, removal: "" }, true)));
    row.append(
      choice("Method", methodsOf(facts, method), method, (value) => set({ method: value })),
      choice("Scores of", [["sentence", "sources and sentences"], ["source", "sources only"]], within, (value) => set({ within: value })),
      choice("Template", [["", "by default"], ...names(facts.chats ? ["plain", "chat"] : ["plain"])], template, (value) => set({ template: value })),
      choice("Lights", [["16", "from 16 draws"], ["64", "from 64 draws"], ["0", "none"]], String(draws), (value) => set({ draws: Number(value) })),
      ...drawingChoices({ removal, seed }, [], (changes) => set(changes, true)),
      count("Tokens at most", tokens, this.model.get("limits").new_tokens, (value) => set({ tokens: value })),
      make("button", { type: "submit", class: "out" }, "Explain"),
    );
    const form = make(
      "form",
      { class: "raison asking", "aria-label": "What is explained" },
      area("Question", question, (text) => set({ question: text })),
      ...sources.map((one, place) => this.sourceField(one, place)),
      make("div", { class: "row" }, button("Add a source", () => set({ sources: [...sources, { id: `source ${sources.length + 1}`, text: "" }] }, true))),
      area("Answer, if not the model's own", answer, (text) => set({ answer: text })),
      row,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    exchangeContent(this.places.asking, form);
    exchangeContent(this.places.comparing, comparisonForm(this.compared, this.settings, models, (compared) => this.compare(compared)));
  }

  sourceField(one, place) {
    const { sources } = this.settings;
    const name = make("input", { type: "text", autocomplete: "off", required: true });
    name.value = one.id;
    name.addEventListener("input", () => Object.assign(one, { id: name.value }));
    const remove = () => {
      this.settings.sources = sources.toSpliced(place, 1);
      this.showForms();
    };
    return make(
      "div",
      { class: "message", role: "group", "aria-label": `Source ${place + 1}` },
      field("Name", name),
      area("Source", one.text, (text) => Object.assign(one, { text })),
      sources.length > 1 ? button("Remove", remove, { "aria-label": `Remove source ${place + 1}` }) : null,
    );
  }

  async follow(stale) {
    const settings = structuredClone(this.settings);
    this.places.maps.setAttribute("aria-busy", "true");
    try {
      const request = citingRequest(settings);
      this.working(request.answer ? "Leaving out sources, one after the other." : "The model answers; then sources are left out, one after the other.");
      const explanation = await this.cite(request);
      if (stale()) return;
      this.past.add({ settings, explanation });
      const { warning, ...found } = (await beside(this.past, this.compared, settings, (one) => this.cite(citingRequest(one)))) ?? {};
      if (stale()) return;
      const other = found.explanation && found;
      await this.show(settings, other ? [other.explanation, explanation] : [explanation], other, stale);
      if (warning && !stale()) this.warn(warning);
    } catch (error) {
      if (!stale()) this.fail(error.message, settings);
    }
  }

  /** The last of the citations are the own ones; `other` has the headings of two. */
  async show(settings, found, other, stale) {
    const views = await Promise.all(found.map((citations) => this.talk.ask("view/citations", { citations })));
    if (stale()) return;
    const headings = other ? [other.heading, other.own] : [""];
    const articles = views.map((view, place) => paintedCitations(view, headings[place]));
    const line = other ? [make("p", { class: "raison told" }, "Each has a scale of its own.")] : [];
    this.places.maps.replaceChildren(make("div", { class: "raison-beside" }, ...articles), ...line);
    this.places.maps.removeAttribute("aria-busy");
    this.say("");
    const { model, question, ...options } = citingRequest(settings);
    const code = call("cite", question, options);
    this.showHistory({ settings, said: citingSaid, code, results: [found.at(-1)] });
  }
}

/** What is asked of the server for these settings. Throws an error for sources whose names do not go together. */
function citingRequest({ model, question, sources, answer, method, within, template, draws, removal, seed, tokens }) {
  const ids = sources.map(({ id }) => id);
  const twice = ids.find((id, place) => ids.indexOf(id) < place);
  if (twice !== undefined) throw new Error(`Two sources are named “${twice}”: name one otherwise.`);
  const own = answer ? { answer } : { max_new_tokens: tokens };
  // Names that are numbers would change the order of an object; a list is numbered from 1.
  const numbered = ids.every((id, place) => id === String(place + 1));
  if (!numbered && ids.some((id) => /^\d+$/.test(id))) throw new Error("A source's name cannot be a number alone, unless all are numbered from 1.");
  const named = numbered ? sources.map(({ text }) => text) : Object.fromEntries(sources.map(({ id, text }) => [id, text]));
  return { model, question, sources: named, method, within, draws, ...(template ? { template } : {}), ...drawing({ removal, seed }), ...own };
}

/** Settings in the history. */
function citingSaid({ question, sources, method }) {
  return `${question} (${sources.map(({ id }) => id).join(", ")}; ${method})`;
}

const NAMED = ["model", "question", "answer", "method", "within", "template", "draws", "removal", "seed", "tokens"];

/** The settings as what follows # in an address. */
function citingToHash(settings, compared) {
  const held = new URLSearchParams({ face: "cite" });
  for (const name of NAMED) if (!["", null].includes(settings[name])) held.append(name, settings[name]);
  for (const { id, text } of settings.sources) {
    held.append("source", id);
    held.append("text", text);
  }
  return addressOf(held, compared);
}

/** The state that an address holds; nothing where it holds none. */
function citingFromHash(hash) {
  const held = new URLSearchParams(hash.slice(1));
  if (held.get("face") !== "cite" || !held.has("question")) return undefined;
  const found = {};
  for (const name of NAMED) if (held.has(name)) found[name] = held.get(name);
  for (const name of ["draws", "seed", "tokens"]) if (name in found) found[name] = Number(found[name]);
  const texts = held.getAll("text");
  const sources = held.getAll("source").map((id, place) => ({ id, text: texts[place] ?? "" }));
  const settings = sources.length ? { ...found, sources } : found;
  return { settings, compared: comparedIn(held) };
}
