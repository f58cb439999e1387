// What a language model writes: a prompt or a chat in, the answer token by token out, with the prompt's map for each.
import { choice, exchangeContent, field, make } from "./elements.js";
import { remembered } from "./requests.js";
import { addressOf, beside, comparedIn } from "./history.js";
import { painted } from "./map.js";
import { comparisonForm, drawingChoices, methodsOf, names, QUANTITIES } from "./form.js";
import { area, count, isBlank, promptEditor } from "./messages.js";
import { paintedOutput } from "./written.js";
import { call, drawing } from "./reproduce.js";
import { Panel } from "./panel.js";

const ANSWERS = 20;
const ANSWERING = { model: "model_name", prompt: "text", method: "method", unit: "unit", of: "of", removal: "removal", seed: "seed", output: "output", tokens: "max_new_tokens" };

export class Writing extends Panel {
  constructor(model, el) {
    super(model, el, ANSWERING, ["asking", "comparing", "status", "maps", "against", "past"]);
    this.explain = remembered((request) => this.talk.ask("explain", request), ANSWERS);
    // A kernel does one thing after the other, so only a server is told that nobody waits.
    this.refresh = this.refreshing(() => this.abandon());
    this.settings = this.read();
    const found = this.found();
    if (found) this.open(found);
    // A page waits until it is asked: an answer takes a while.
    else if (this.linked) this.showForms();
    else this.start();
  }

  about({ prompt, output }) {
    return [prompt, output];
  }

  stateOf(hash) {
    return writingFromHash(hash);
  }

  addressOf(settings) {
    return writingToHash(settings, this.compared);
  }

  showForms() {
    const models = this.model.get("models");
    const facts = models.find((one) => one.name === this.settings.model) ?? models[0];
    const set = (changes, typed) => {
      Object.assign(this.settings, changes);
      if (!typed) this.showForms();
    };
    const { prompt, method, unit, of, output, tokens } = this.settings;
    const chat = typeof prompt !== "string";
    const units = facts.units.filter((one) => chat || one !== "part").map((one) => [one, one === "part" ? "messages" : `${one}s`]);
    const row = make("div", { class: "row" });
    if (models.length > 1) row.append(choice("Model", names(models.map((one) => one.name)), facts.name, (name) => set(forModel(this.settings, models, name))));
    row.append(
      choice("Method", methodsOf(facts, method), method, (value) => set({ method: value }, true)),
      choice("Units", units, unit, (value) => set({ unit: value }, true)),
      choice("Quantity", [["", "by default"], ...QUANTITIES.map((name) => [name, name.replace("_", "-")])], of ?? "", (value) => set({ of: value || null }, true)),
      ...drawingChoices(this.settings, facts.removals, set),
      count("Tokens at most", tokens, this.model.get("limits").new_tokens, (value) => set({ tokens: value }, true)),
      make("button", { type: "submit", class: "out" }, "Explain"),
    );
    const form = make(
      "form",
      { class: "raison asking", "aria-label": "What is explained" },
      ...promptEditor(prompt, facts.chats, (changed, typed) => set({ prompt: changed, unit: typeof changed === "string" && unit === "part" ? "word" : unit }, typed)),
      area("Answer, if not the model's own", output, (value) => set({ output: value }, true)),
      row,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    exchangeContent(this.places.asking, form);
    exchangeContent(this.places.comparing, comparisonForm(this.compared, this.settings, models, (compared) => this.compare(compared)));
  }

  async follow(stale) {
    if (isBlank(this.settings.prompt)) return this.say("Type or paste a prompt.");
    this.write();
    const settings = structuredClone(this.settings);
    const request = writingRequest(settings);
    this.places.maps.setAttribute("aria-busy", "true");
    this.places.against.replaceChildren();
    try {
      if (!request.output && !this.explain.knows(request)) {
        this.working("The model writes.");
        const { model, text, max_new_tokens } = request;
        const told = await this.talk.ask("predict", { model, text, max_new_tokens });
        if (stale()) return;
        this.working(`Written: “${told.output.trim()}”. The map of each token follows.`);
      }
      const explanation = await this.explain(request);
      if (stale()) return;
      this.past.add({ settings, explanation });
      const { warning, ...found } = (await beside(this.past, this.compared, settings, (one) => this.explain(writingRequest(one)))) ?? {};
      if (stale()) return;
      const other = found.explanation && found;
      const view = await this.talk.ask("view/output", { explanation, beside: other?.explanation ?? null });
      const views = other ? [await this.talk.ask("view/output", { explanation: other.explanation }), view] : [view];
      if (stale()) return;
      this.show(settings, other ? [other.explanation, explanation] : [explanation], views, other);
      if (warning) this.warn(warning);
    } catch (error) {
      if (!stale()) this.fail(error.message, settings);
    }
  }

  /** The last of the explanations is the own one; `other` has the headings of two. */
  show(settings, explanations, views, other) {
    const request = writingRequest(settings);
    const headings = other ? [other.heading, other.own] : [""];
    const last = views.length - 1;
    const articles = views.map((view, place) => {
      const explanation = explanations[place];
      const span = (first, end) => this.tried(this.talk.ask("view/span", { explanation, first, last: end }));
      const held = place === last ? (number) => this.showContrast(request, explanation, view, number) : () => {};
      return paintedOutput(view, headings[place], { span, held });
    });
    const lines = views[last].remarks.map((line) => make("p", { class: "raison told" }, `${line}.`));
    this.places.maps.replaceChildren(make("div", { class: "raison-beside" }, ...articles), ...lines);
    this.places.maps.removeAttribute("aria-busy");
    this.say("");
    const { model, text, ...options } = request;
    const code = call("explain", text, options);
    this.showHistory({ settings, said: writingSaid, code, results: [explanations[last]] });
  }

  /** The bar that asks why this token and not another one. */
  showContrast(request, explanation, view, number) {
    if (number === undefined) return this.places.against.replaceChildren();
    const text = view.tokens[number].text;
    const input = make("input", { type: "text", dir: "auto", lang: "", autocomplete: "off", spellcheck: "false", required: true });
    const place = make("div", { class: "contrast" });
    const bar = make("form", { class: "raison word-bar", "aria-label": "Why this and not that" }, field(`Why “${text.trim()}” and not`, input), make("button", { type: "submit", class: "out" }, "Compare"));
    bar.addEventListener("submit", async (event) => {
      event.preventDefault();
      this.say("Comparing the two.");
      const seen = await this.tried(this.against(request, explanation, view.tokens[number].end, number, input.value));
      if (!seen) return;
      this.say("");
      place.replaceChildren(painted(seen.views[0], `Why “${text.trim()}” and not “${input.value.trim()}”`, null));
    });
    this.places.against.replaceChildren(bar, place);
  }

  /** The answer up to a token, which is explained against the first token of another continuation. */
  async against(request, explanation, end, number, word) {
    const { max_new_tokens, ...rest } = request;
    const output = Array.from(explanation.output).slice(0, end).join("");
    // Of the tokens before it nothing is shown: any other token will do.
    const others = explanation.tokens.slice(0, number).map(({ id }) => (id ? 0 : 1));
    const other = await this.explain({ ...rest, output, contrast: [...others, word] });
    return this.talk.ask("view/token", { explanation: other, token: number });
  }

  async tried(asked) {
    try {
      return await asked;
    } catch (error) {
      this.warn(error.message);
      return undefined;
    }
  }

  clear() {
    super.clear();
    this.places.against.replaceChildren();
  }
}

/** What is asked of a server or a kernel for these settings. */
function writingRequest({ model, prompt, method, unit, of, removal, seed, output, tokens }) {
  const own = output ? { output } : { max_new_tokens: tokens };
  return { model, text: structuredClone(prompt), method, unit, of, ...drawing({ removal, seed }), ...own };
}

/** Settings in the history. */
function writingSaid({ prompt, output, method }) {
  const asked = typeof prompt === "string" ? prompt : prompt.map(({ role, content }) => `${role}: ${content}`).join(" / ");
  return `${asked}${output ? ` → ${output.trim()}` : ""} (${method})`;
}

/** The settings for another model: what that model lacks is left out. */
function forModel({ method, prompt, unit }, models, name) {
  const facts = models.find((one) => one.name === name);
  const flat = facts.chats || typeof prompt === "string" ? prompt : prompt.map(({ content }) => content).join("\n");
  return {
    model: name,
    method: facts.methods.includes(method.split("(")[0]) ? method : "auto",
    prompt: flat,
    unit: facts.units.includes(unit) ? unit : "word",
    removal: null,
  };
}

/** The settings as what follows # in an address. */
function writingToHash({ model, prompt, method, unit, of, removal, seed, output, tokens }, compared) {
  const held = new URLSearchParams({ face: "write", model, method, unit, tokens, ...(of ? { of } : {}), ...drawing({ removal, seed }), ...(output ? { output } : {}) });
  const messages = typeof prompt === "string" ? [{ content: prompt }] : prompt;
  for (const { role, content } of messages) {
    if (role) held.append("role", role);
    held.append("text", content);
  }
  return addressOf(held, compared);
}

/** The state that an address holds; nothing where it holds none. */
function writingFromHash(hash) {
  const held = new URLSearchParams(hash.slice(1));
  if (held.get("face") !== "write" || !held.has("text")) return undefined;
  const [roles, texts] = [held.getAll("role"), held.getAll("text")];
  const found = { prompt: roles.length ? texts.map((content, place) => ({ role: roles[place], content })) : texts[0] };
  for (const name of ["model", "method", "unit", "of", "removal", "output"]) if (held.has(name)) found[name] = held.get(name);
  if (held.has("seed")) found.seed = Number(held.get("seed"));
  if (held.has("tokens")) found.tokens = Number(held.get("tokens"));
  return { settings: found, compared: comparedIn(held) };
}
