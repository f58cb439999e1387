// What the three panels of the component share: history, links, comparisons and the status line.
import { button, exchangeContent, make } from "./elements.js";
import { latest, talker } from "./requests.js";
import { StateHistory, historyRow, undoKey } from "./history.js";
import { exportMenu } from "./exports.js";

/** What is said of work that was ended by hand. */
export const STOPPED = "Stopped. What was begun is not finished.";

/**
 * Settings and what is shown of them. A subclass has `about(settings)`, as `StateHistory` asks for it, `stateOf(hash)`,
 * the state of an address, `addressOf(settings)`, the address of settings, `showForms()` and `refresh()`, and sets
 * `settings` in the end.
 */
export class Panel {
  /** `traits` are those of the model that are settings, by their names here; `parts` stand below each other. */
  constructor(model, el, traits, parts) {
    this.model = model;
    this.talk = talker(model);
    this.traits = traits;
    this.past = new StateHistory((settings) => this.about(settings));
    this.compared = { with: "before", value: null };
    this.linked = Boolean(model.get("linked"));
    this.initial = this.read();
    this.root = make("div", { class: "raison-component" });
    this.places = Object.fromEntries(parts.map((name) => [name, make("div", { class: `place-${name}` })]));
    this.places.status.setAttribute("role", "status");
    this.root.append(...Object.values(this.places));
    el.append(this.root);
    this.listen();
  }

  listen() {
    const heard = () => this.outside();
    const moved = () => this.open(this.stateOf(location.hash));
    for (const trait of Object.values(this.traits)) this.model.on(`change:${trait}`, heard);
    if (this.linked) addEventListener("hashchange", moved);
    const undone = (event) => undoKey(event, (count) => this.undo(count));
    // On a page of its own, the focus may lie outside of the component.
    const heardBy = this.linked ? document : this.root;
    heardBy.addEventListener("keydown", undone);
    this.close = () => {
      heardBy.removeEventListener("keydown", undone);
      for (const trait of Object.values(this.traits)) this.model.off(`change:${trait}`, heard);
      removeEventListener("hashchange", moved);
      this.isClosed = true;
      this.abandon();
      this.talk.close();
    };
  }

  /** Follows the settings again whenever it is called; after a refused link, only once other settings are chosen. */
  refreshing(interrupt) {
    return latest((stale) => (this.refused ? this.fail(this.refused) : this.follow(stale)), interrupt);
  }

  /** What was asked before, or only a sort of it, is not waited for any more, where the other side hears that. */
  abandon(only) {
    if (this.model.get("drops")) this.talk.drop(undefined, only);
  }

  /** The form was sent: what it shows is asked, whatever a link named before. */
  submit() {
    this.refused = "";
    this.refresh();
  }

  /** The settings as the model has them. */
  read() {
    return Object.fromEntries(Object.entries(this.traits).map(([name, trait]) => [name, structuredClone(this.model.get(trait)) ?? null]));
  }

  /** Settings that were changed elsewhere: in a notebook's cell, or in another view. */
  outside() {
    const settings = this.read();
    if (this.writing || JSON.stringify(settings) === JSON.stringify(this.settings)) return;
    this.refused = "";
    this.settings = settings;
    this.start();
  }

  /** The model gets the settings. What it then tells is no change from elsewhere. */
  write() {
    this.writing = true;
    for (const [name, trait] of Object.entries(this.traits)) this.model.set(trait, structuredClone(this.settings[name]));
    this.writing = false;
    this.model.save_changes();
  }

  /** The state that the address holds, nothing where there is none or where addresses are another's. */
  found() {
    return this.linked ? this.stateOf(location.hash) : undefined;
  }

  /** A state that an address holds; what it does not name is as the page began. */
  open(state) {
    if (!state) return;
    const { model } = state.settings;
    if (model !== undefined && !this.model.get("models").some(({ name }) => name === model)) {
      this.refused = `The link names the model '${model}', which is not among those here.`;
      return this.start();
    }
    this.compared = state.compared;
    this.go({ ...this.initial, ...state.settings });
  }

  /** Other settings at once. */
  go(settings) {
    this.take(settings);
    this.start();
  }

  take(settings) {
    this.refused = "";
    this.settings = { ...this.settings, ...structuredClone(settings) };
  }

  start() {
    this.showForms();
    this.refresh();
  }

  /** Whether what is asked is not the last state: it was refused, or is not explained yet. */
  get isAhead() {
    const { now } = this.past;
    return now !== undefined && (Boolean(this.refused) || JSON.stringify(this.settings) !== JSON.stringify(now.settings));
  }

  /** A step back or on; back from what is ahead of all states is the last one. */
  undo(count) {
    this.visit(count === -1 && this.isAhead ? 0 : count);
  }

  /** The state a number of steps away. */
  visit(count) {
    const entry = this.past.step(count);
    if (entry) this.go(entry.settings);
  }

  compare(compared) {
    this.refused = "";
    this.compared = compared;
    this.showForms();
    if (this.past.now) this.refresh();
  }

  /** The address holds settings from now on: those that are seen, or those that were refused. */
  hold(settings) {
    if (this.linked && !this.isClosed) history.replaceState(null, "", this.addressOf(settings));
  }

  /** The history, and what can be taken away of the results that are seen. */
  showHistory({ settings, said, code, results }) {
    this.hold(settings);
    this.said = said;
    const row = this.steps();
    const take = exportMenu(code, results, this.linked ? location.href : null, this.talk.ask);
    exchangeContent(this.places.past, make("section", { class: "raison", "aria-label": "History" }, row, take));
  }

  /** The history, from which a state that was refused is stepped back as well. */
  steps() {
    const moves = { undo: (count) => this.undo(count), visit: (count) => this.visit(count) };
    return historyRow(this.past, this.said, moves, this.isAhead);
  }

  say(message) {
    this.places.status.replaceChildren(...(message ? [make("p", { class: "raison told" }, message)] : []));
  }

  /** What takes a while. It can be ended where the other side hears that nobody waits any more. */
  working(message) {
    this.say(message);
    if (!this.model.get("drops")) return;
    this.ended = false;
    const stop = button("Stop", () => {
      this.ended = true;
      this.talk.drop(STOPPED);
    });
    this.places.status.firstChild.append(" ", stop);
  }

  warn(message) {
    this.places.status.replaceChildren(make("p", { class: "raison told warning" }, message));
  }

  /** Nothing is shown beside an error: the maps are those of something else. What was asked is kept in the address. */
  fail(message, settings = this.settings) {
    this.clear();
    this.warn(message);
    if (!this.refused) this.hold(settings);
  }

  /** Nothing is seen any more. */
  clear() {
    this.places.maps.replaceChildren();
    this.places.maps.removeAttribute("aria-busy");
    // What could be taken away was of what was seen; the history leads back.
    if (this.past.now && this.said) exchangeContent(this.places.past, make("section", { class: "raison", "aria-label": "History" }, this.steps()));
  }
}
