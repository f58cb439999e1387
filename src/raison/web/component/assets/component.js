// The component: settings and maps of one model, as anywidget gives it, in one element.
import { button, exchangeContent, focused, make } from "./elements.js";
import { paused, remembered } from "./requests.js";
import { beside, fromHash, toHash } from "./history.js";
import { focusUnit, painted } from "./map.js";
import { wordBar } from "./words.js";
import { withoutSpan } from "./texts.js";
import { comparisonForm, moved, settingsForm } from "./form.js";
import { code } from "./reproduce.js";
import { Panel, STOPPED } from "./panel.js";
import { Writing } from "./writing.js";
import { Citing } from "./citing.js";
import { trustView } from "./trust.js";
import { listed, renderRows } from "./rows.js";

const TRAITS = { model: "model_name", text: "text", method: "method", unit: "unit", target: "target", of: "of", removal: "removal", seed: "seed", truncate: "truncate" };
const TYPING = 120;
const RESTING = 250;
const KEPT = 60;
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

class Component extends Panel {
  constructor(model, el) {
    super(model, el, TRAITS, ["asking", "comparing", "status", "maps", "word", "trust", "past"]);
    this.explain = remembered((request) => this.talk.ask("explain", request), KEPT);
    this.refresh = this.refreshing(() => this.abandon());
    this.typed = paused(() => this.refresh(), TYPING);
    this.settings = this.read();
    const found = this.found();
    if (found) this.open(found);
    else this.start();
  }

  about({ text }) {
    return text;
  }

  stateOf(hash) {
    return fromHash(hash, Object.keys(TRAITS));
  }

  addressOf(settings) {
    return toHash(settings, this.compared);
  }

  take(settings) {
    const before = JSON.stringify(this.settings.text);
    super.take(settings);
    // The bar belongs to a word of the text before.
    if (JSON.stringify(this.settings.text) !== before) this.places.word.replaceChildren();
    this.write();
  }

  change(settings, typing) {
    this.take(settings);
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
    this.refused = "";
    this.compared = compared;
    if (typing) this.typed();
    else this.start();
  }

  /** The quick method first, then the one that is asked for; neither once something else is asked. */
  async follow(stale) {
    // A check of the map before is not waited for.
    this.abandon("check");
    const settings = this.settings;
    const facts = this.model.get("models").find((one) => one.name === settings.model);
    if ([settings.text].flat().every((string) => !string.trim())) return this.invite();
    this.places.maps.setAttribute("aria-busy", "true");
    let isQuick = false;
    try {
      const quick = facts?.quick;
      if (quick && quick !== settings.method && !this.explain.knows(settings)) {
        this.working(`Explaining, first with ${quick}, which takes few passes.`);
        const explanation = await this.explain({ ...settings, method: quick });
        if (stale()) return;
        await this.show([explanation], ["Quick map"], settings);
        isQuick = true;
        this.working(`Quick map by ${quick}; ${settings.method} follows.`);
        await pause(RESTING);
        if (stale()) return;
        // Between the two nothing is asked that could be dropped.
        if (this.ended) throw new Error(STOPPED);
      } else if (!quick && !this.explain.knows(settings)) {
        this.working("Explaining.");
      }
      await this.ask(settings, stale);
    } catch (error) {
      if (stale()) return;
      if (error.truncatable && !settings.truncate) return this.offerWhatFits(error.message);
      const isStopped = error.message === STOPPED;
      // The quick map is of these settings, and says what it is.
      if (isQuick && isStopped) this.places.maps.removeAttribute("aria-busy");
      else this.clear();
      this.warn(error.message);
      this.hold(settings);
      if (isStopped || error.unreached) this.offer("Explain again", () => this.refresh());
    }
  }

  async ask(settings, stale) {
    const explanation = await this.explain(settings);
    if (stale()) return;
    this.past.add({ settings, explanation });
    const { warning, ...found } = (await beside(this.past, this.compared, settings, (one) => this.explain(this.fitted(one, settings)))) ?? {};
    if (stale()) return;
    const other = found.explanation && found;
    const asked = settings.target !== null && this.compared.with === "model" && this.fitted({ ...settings, model: this.compared.value }, settings);
    if (other && asked && asked.target === null) other.heading = `${other.heading}: what it predicts`;
    const shown = other ? [other.explanation, explanation] : [explanation];
    await this.show(shown, other ? [other.heading, other.own] : [""], settings);
    this.places.maps.removeAttribute("aria-busy");
    if (warning) this.warn(warning);
    else this.say("");
    this.showHistory({ settings, said: textSaid, code: code(settings), results: shown });
    this.showTrust(settings, explanation, stale);
  }

  /** The settings for the model that stands beside the own one. */
  fitted(asked, own) {
    const models = this.model.get("models");
    const isKnown = models.some(({ name }) => name === asked.model);
    return asked.model === own.model || !isKnown ? asked : { ...asked, ...moved(asked, models, asked.model) };
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
    if (JSON.stringify(this.settings.text) !== JSON.stringify(settings.text)) return;
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
    } catch (error) {
      if (stale()) return;
      this.places.trust.replaceChildren();
      if (!error.isDropped) this.warn(error.message);
    }
  }

  /** The text is longer than the model reads. */
  offerWhatFits(message) {
    this.fail(message);
    this.offer("Explain what fits", () => this.change({ ...this.settings, truncate: true }, false));
  }

  /** A button behind what was said. */
  offer(name, act) {
    this.places.status.firstChild.append(" ", button(name, act));
  }

  /** There is no text yet. */
  invite() {
    this.clear();
    this.say("Type or paste a text.");
    this.hold(this.settings);
  }

  clear() {
    super.clear();
    this.places.trust.replaceChildren();
  }
}

/** Settings in the history. */
function textSaid(settings, varied) {
  const { text, method } = settings;
  const others = varied.filter((name) => name !== "text" && name !== "method");
  const said = others.map((name) => (name === "truncate" ? `long texts ${settings.truncate ? "cut off" : "refused"}` : `${name} ${[settings[name] ?? "default"].flat().join(" / ")}`));
  return `${[text].flat().join(" / ")} (${[method, ...said].join(", ")})`;
}

const PANELS = {
  predict: (model, el) => new Component(model, el),
  write: (model, el) => new Writing(model, el),
  cite: (model, el) => new Citing(model, el),
  rows: listed,
};

/** Show the component in an element; what is given back takes it away again. A model's `face` is what is asked of it. */
export function render({ model, el }) {
  const component = PANELS[model.get("face") ?? "predict"](model, el);
  return () => {
    component.close();
    component.root.remove();
  };
}

export default { render, renderRows };
