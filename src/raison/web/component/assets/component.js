// The component: settings and maps of one model, as anywidget gives it, in one element.
import { button, exchangeContent, focused, make } from "./elements.js";
import { latest, paused, remembered, talker } from "./talk.js";
import { Past, beside, fromHash, pastRow, toHash, undoKey } from "./past.js";
import { focusUnit, painted } from "./map.js";
import { wordBar } from "./words.js";
import { withoutSpan } from "./texts.js";
import { comparisonForm, settingsForm } from "./form.js";
import { code, taking } from "./taking.js";
import { Writing } from "./writing.js";
import { Citing } from "./citing.js";
import { trustView } from "./trust.js";
import { listed, renderRows } from "./rows.js";

const TRAITS = { model: "model_name", text: "text", method: "method", unit: "unit", target: "target", of: "of" };
const TYPING = 120;
const RESTING = 250;
const KEPT = 60;
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

class Component {
  constructor(model, el) {
    this.model = model;
    this.talk = talker(model);
    this.past = new Past(({ text }) => text);
    this.compared = { with: "before", value: null };
    this.settings = this.read();
    this.explain = remembered((request) => this.talk.ask("explain", request), KEPT);
    // A kernel does one thing after the other, so only a server is told that nobody waits.
    const interrupt = () => (model.get("drops") ? this.talk.drop() : undefined);
    this.refresh = latest((stale) => this.follow(stale), interrupt);
    this.typed = paused(() => this.refresh(), TYPING);
    this.root = make("div", { class: "raison-component" });
    this.places = {};
    for (const name of ["asking", "comparing", "status", "maps", "word", "trust", "past"]) this.places[name] = make("div", { class: `place-${name}` });
    this.places.status.setAttribute("role", "status");
    this.root.append(...Object.values(this.places));
    this.root.addEventListener("keydown", (event) => undoKey(event, (count) => this.undo(count)));
    el.append(this.root);
    this.listen();
  }

  listen() {
    const heard = () => this.outside(this.read());
    for (const trait of Object.values(TRAITS)) this.model.on(`change:${trait}`, heard);
    const moved = () => this.open(fromHash(location.hash, Object.keys(TRAITS)));
    const linked = Boolean(this.model.get("linked"));
    if (linked) addEventListener("hashchange", moved);
    this.close = () => {
      for (const trait of Object.values(TRAITS)) this.model.off(`change:${trait}`, heard);
      removeEventListener("hashchange", moved);
      this.talk.close();
    };
    this.linked = linked;
    const state = linked ? fromHash(location.hash, Object.keys(TRAITS)) : undefined;
    if (state) this.open(state);
    else this.start();
  }

  start() {
    this.showForms();
    this.refresh();
  }

  /** A state that an address holds; what it does not name is as before. */
  open(state) {
    if (!state) return;
    this.compared = state.compared;
    this.write({ ...this.settings, ...state.settings });
    this.start();
  }

  read() {
    return Object.fromEntries(Object.entries(TRAITS).map(([name, trait]) => [name, this.model.get(trait) ?? null]));
  }

  write(settings) {
    // The bar belongs to a word of the text before.
    if (JSON.stringify(settings.text) !== JSON.stringify(this.settings.text)) this.places.word.replaceChildren();
    this.settings = settings;
    for (const [name, trait] of Object.entries(TRAITS)) this.model.set(trait, settings[name]);
    this.model.save_changes();
  }

  /** Settings that were changed elsewhere: in a notebook's cell, or in another view. */
  outside(settings) {
    if (JSON.stringify(settings) === JSON.stringify(this.settings)) return;
    this.settings = settings;
    this.start();
  }

  change(settings, typing) {
    this.write(settings);
    if (typing) this.typed();
    else this.start();
  }

  showForms() {
    const models = this.model.get("models");
    const asking = settingsForm(this.settings, models, (settings, typing) => this.change({ ...settings, text: typing ? settings.text : this.settings.text }, typing));
    const comparing = comparisonForm(this.compared, this.settings, models, (compared, typing) => this.compare(compared, typing));
    exchangeContent(this.places.asking, asking);
    exchangeContent(this.places.comparing, comparing);
  }

  compare(compared, typing) {
    this.compared = compared;
    if (typing) this.typed();
    else this.start();
  }

  /** The quick method first, then the one that is asked for; neither once something else is asked. */
  async follow(stale) {
    const settings = this.settings;
    const facts = this.model.get("models").find((one) => one.name === settings.model);
    if ([settings.text].flat().every((string) => !string.trim())) return this.invite();
    this.places.maps.setAttribute("aria-busy", "true");
    try {
      const quick = facts?.quick;
      if (quick && quick !== settings.method && !this.explain.knows(settings)) {
        this.say(`Explaining, first with ${quick}, which takes few passes.`);
        const explanation = await this.explain({ ...settings, method: quick });
        if (stale()) return;
        await this.show([explanation], ["Quick map"], settings);
        this.say(`Quick map by ${quick}; ${settings.method} follows.`);
        await pause(RESTING);
        if (stale()) return;
      }
      await this.ask(settings, stale);
    } catch (error) {
      if (!stale()) this.fail(error.message);
    }
  }

  async ask(settings, stale) {
    const explanation = await this.explain(settings);
    if (stale()) return;
    this.past.add({ settings, explanation });
    const other = await beside(this.past, this.compared, settings, this.explain);
    if (stale()) return;
    const shown = other ? [other.explanation, explanation] : [explanation];
    await this.show(shown, other ? [other.heading, other.own] : [""], settings);
    this.shown = shown;
    this.places.maps.removeAttribute("aria-busy");
    this.say("");
    this.showPast();
    this.showTrust(settings, explanation, stale);
    if (this.linked) history.replaceState(null, "", toHash(settings, this.compared));
  }

  async show(explanations, headings, settings) {
    const seen = await this.talk.ask("view", { explanations });
    const last = explanations.length - 1;
    const articles = seen.views.map((view, place) => painted(view, headings[place], place === last ? (span, wish) => this.touch(settings, span, wish) : null));
    // What was said of the map before is not said of this one.
    this.places.trust.replaceChildren();
    const held = this.held();
    const lines = seen.remarks.map((line) => make("p", { class: "raison told" }, `${line}.`));
    this.places.maps.replaceChildren(make("div", { class: "raison-beside" }, ...articles), ...lines);
    this.own = articles[last];
    if (held !== undefined) focusUnit(this.own, held);
  }

  /** The number of the unit that has the focus, or is to get it. */
  held() {
    const next = this.next;
    this.next = undefined;
    if (next !== undefined) return next;
    const place = this.own ? [...this.own.querySelectorAll(".unit")].indexOf(focused(this.root)) : -1;
    return place < 0 ? undefined : place;
  }

  /** A unit of the present text was clicked, entered or deleted. */
  touch(settings, span, wish) {
    if (this.settings.text !== settings.text) return;
    const place = [...this.own.querySelectorAll(".unit")].findIndex((one) => one.dataset.units === span.units.join(" "));
    const change = (text) => {
      this.next = place;
      this.change({ ...this.settings, text }, false);
    };
    if (wish === "delete") return change(withoutSpan(settings.text, span));
    const { bar, input } = wordBar(settings.text, span, change, () => {
      this.places.word.replaceChildren();
      focusUnit(this.own, place);
    });
    this.places.word.replaceChildren(bar);
    input.focus();
    input.select();
  }

  async showTrust(settings, explanation, stale) {
    try {
      const told = await this.talk.ask("view/trust", { model: settings.model, explanation });
      const check = () => this.talk.ask("check", settings);
      if (!stale()) this.places.trust.replaceChildren(trustView(told, check));
    } catch {
      // Something else is asked by now.
      this.places.trust.replaceChildren();
    }
  }

  showPast() {
    const said = ({ text, method }) => `${[text].flat().join(" / ")} (${method})`;
    const row = pastRow(this.past, said, (count) => this.undo(count));
    const link = this.linked ? location.href : null;
    const take = taking(code(this.past.now.settings), this.shown, link, this.talk.ask);
    exchangeContent(this.places.past, make("section", { class: "raison", "aria-label": "History" }, row, take));
  }

  undo(count) {
    const entry = this.past.step(count);
    if (!entry) return;
    this.write(entry.settings);
    this.start();
  }

  say(message) {
    this.places.status.replaceChildren(...(message ? [make("p", { class: "raison told" }, message)] : []));
  }

  /** There is no text yet. */
  invite() {
    this.places.maps.replaceChildren();
    this.places.trust.replaceChildren();
    this.places.maps.removeAttribute("aria-busy");
    this.say("Type or paste a text.");
  }

  /** Nothing is shown beside an error: the maps are those of another text. */
  fail(message) {
    this.places.maps.replaceChildren();
    this.places.trust.replaceChildren();
    this.places.maps.removeAttribute("aria-busy");
    this.places.status.replaceChildren(make("p", { class: "raison told warning" }, message));
  }
}

const FACES = {
  predict: (model, el) => new Component(model, el),
  write: (model, el) => new Writing(model, el),
  cite: (model, el) => new Citing(model, el),
  rows: listed,
};

/** Show the component in an element; what is given back takes it away again. A model's `face` is what is asked of it. */
export function render({ model, el }) {
  const component = FACES[model.get("face") ?? "predict"](model, el);
  return () => {
    component.close();
    component.root.remove();
  };
}

export default { render, renderRows };
