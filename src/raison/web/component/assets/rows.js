// Runs and lists: the texts of a row of a table in slices, the map of a text, and what all texts come to.
import { button, exchangeContent, make } from "./elements.js";
import { latest, paused, talker } from "./requests.js";
import { painted } from "./map.js";
import { codeOf, editLink, requestOf } from "./reproduce.js";
import { paintedCitations } from "./statements.js";
import { exportMenu } from "./exports.js";
import { trustView } from "./trust.js";
import { counted, dataTable, decimal, upper } from "./tables.js";
import { FILTERS, filterForm, firstOf, isWritten, runForm } from "./rowsfilter.js";
import { accuracyOf, slicesTable, wordsView } from "./rowswords.js";
import { paintedOutput } from "./written.js";

const COUNT = 25;
const PAUSE = 250;
const SHOWN = 160;
/** What stands over the columns, by what the model gives. */
const SAID = {
  number: { prediction: "Output" },
  output: { text: "Prompt", prediction: "Written", size: "Tokens" },
  answer: { text: "Question", prediction: "Answer", size: "Statements" },
};
const PLACES = ["run", "filter", "status", "table", "map", "trust", "slices", "words"];

class Rows {
  /** Where the page is `linked`, its address holds the state. */
  constructor(ask, el, linked) {
    this.ask = ask;
    this.linked = linked;
    this.root = make("div", { class: "raison-component" });
    this.places = Object.fromEntries(PLACES.map((name) => [name, make("div", { class: `place-${name}` })]));
    this.places.status.setAttribute("role", "status");
    this.root.append(...Object.values(this.places));
    this.refresh = latest((stale) => this.follow(stale), () => undefined);
    this.typed = paused(() => this.refresh(), PAUSE);
    el.append(this.root);
    const moved = () => this.open();
    if (linked) addEventListener("hashchange", moved);
    this.close = () => removeEventListener("hashchange", moved);
    this.begin();
  }

  async begin() {
    try {
      this.runs = (await this.ask("runs", {})).runs;
    } catch (error) {
      return this.fail(error.message);
    }
    if (this.runs.length) this.open();
    else this.say("There is no run here. Start the server with --runs and a folder of runs: of comparisons, or of files that were explained (raison explain --data).");
  }

  /** The state that the address holds, as far as there is such a run. */
  open() {
    const held = this.linked ? Object.fromEntries(new URLSearchParams(location.hash.slice(1))) : {};
    const run = this.runs.find((one) => one.run === held.run);
    this.absent = held.run && !run ? `There is no run ${held.run} here. This is ${this.runs[0].run}: ` : "";
    this.state = run ? { ...firstOf(run), ...held } : firstOf(this.runs[0]);
    this.restart();
  }

  /** Another run or row: all is new. */
  async restart() {
    this.run = this.runs.find((one) => one.run === this.state.run);
    this.names = { label: [], prediction: [] };
    for (const name of PLACES) if (name !== "run") this.places[name].replaceChildren();
    this.showRuns();
    const place = this.place;
    this.refresh();
    try {
      const { slices } = await this.ask("runs/slices", place);
      if (place !== this.place) return;
      const named = (by) => slices.filter((one) => one.by === by).map((one) => one.query[by]);
      this.names = { label: named("label"), prediction: named("prediction") };
      this.showFilter();
      this.showSlices(slices);
    } catch (error) {
      if (place === this.place) this.fail(error.message);
    }
  }

  showRuns() {
    const form = runForm(this.runs, this.state, (state) => {
      this.state = state;
      this.isChoice = true;
      this.absent = "";
      this.restart();
    });
    if (form.childElementCount) exchangeContent(this.places.run, form);
  }

  /** The row of a run's table, one object as long as it is the same. */
  get place() {
    const { run, row, seed } = this.state;
    const last = this.last;
    if (!last || last.run !== run || last.row !== row || last.seed !== seed) this.last = { run, row, seed };
    return this.last;
  }

  change(changes, typed = false) {
    this.state = { ...this.state, start: undefined, number: undefined, ...changes };
    if (typed) return this.typed();
    this.isChoice = true;
    this.showFilter();
    this.refresh();
  }

  /** The texts of a word or of a slice, and no other filter. */
  look(filters) {
    this.change({ ...Object.fromEntries(FILTERS.map((name) => [name, undefined])), ...filters });
    this.places.status.scrollIntoView({ block: "nearest" });
  }

  showFilter() {
    exchangeContent(this.places.filter, filterForm(this.run, this.state, this.names, (changes, typed) => this.change(changes, typed)));
  }

  showSlices(slices) {
    const look = (filters) => this.look(filters);
    const fold = (said, content) => make("details", { class: "raison" }, make("summary", {}, said), content);
    if (this.run.labelled) exchangeContent(this.places.slices, fold("Slices", slicesTable(slices, look)));
    if (!this.run.explained || isWritten(this.run)) return;
    const words = make("p", { role: "status" }, "Reading all texts");
    const view = fold("Words", words);
    view.addEventListener("toggle", () => this.showWords(words, look), { once: true });
    exchangeContent(this.places.words, view);
  }

  async showWords(place, look) {
    try {
      const told = await this.ask("runs/words", this.place);
      place.replaceWith(wordsView(told, this.run.unit, this.run.texts, look));
    } catch (error) {
      place.textContent = error.message;
    }
  }

  async follow(stale) {
    const { number, ...wanted } = known(this.state);
    this.places.table.setAttribute("aria-busy", "true");
    try {
      const slice = await this.ask("runs/texts", { ...wanted, count: COUNT });
      if (stale()) return;
      if (this.linked) this.address();
      this.showTable(slice);
      await this.showMap(number, stale);
    } catch (error) {
      if (!stale()) this.fail(error.message);
    }
    if (!stale()) this.places.table.removeAttribute("aria-busy");
  }

  /** The address holds the state. A choice is a step that the browser's Back takes back; typing is none. */
  address() {
    const hash = `#${new URLSearchParams(known(this.state))}`;
    if (hash !== location.hash) history[this.isChoice ? "pushState" : "replaceState"](null, "", hash);
    this.isChoice = false;
  }

  showTable(slice) {
    // A link can lead beyond the end of a run that has become shorter.
    if (slice.matching && slice.start >= slice.matching) {
      this.change({ start: String(Math.floor((slice.matching - 1) / COUNT) * COUNT) });
      this.isChoice = false;
      return;
    }
    const right = slice.accuracy && this.state.wrong !== "true" ? `, accuracy ${accuracyOf(slice.accuracy)}` : "";
    const all = counted(this.run.texts, "text");
    const first = slice.texts < this.run.texts ? `the first ${slice.texts.toLocaleString("en")} of ${all}` : all;
    this.say(`${this.absent}${slice.matching.toLocaleString("en")} of ${first}${right}`);
    const { sort = "number", descending } = this.state;
    const choose = (by, down) => this.change({ sort: by, descending: String(down) });
    const table = dataTable("Texts", this.columns(slice.rows), slice.rows, { by: sort, descending: descending === "true", choose });
    const steps = [this.step("Previous", slice.start - COUNT, slice.start > 0), this.step("Next", slice.start + COUNT, slice.start + COUNT < slice.matching)];
    const last = Math.min(slice.start + COUNT, slice.matching);
    const shown = make("span", {}, slice.matching ? `${slice.start + 1} to ${last}` : "none");
    exchangeContent(this.places.table, make("section", { class: "raison", "aria-label": "Texts" }, table, make("div", { class: "row" }, ...steps, shown)));
  }

  step(said, start, able) {
    const go = () => able && this.change({ start: String(start) });
    return button(said, go, { "aria-disabled": String(!able) });
  }

  columns(lines) {
    const { text = "Text", prediction = "Prediction", size = "Size" } = SAID[this.run.gives] ?? {};
    const columns = [
      { said: "No.", order: "number", cell: (line) => line.id || String(line.number + 1) },
      { said: text, main: true, cell: (line) => this.textCell(line) },
      { said: "Label", order: "label", cell: (line) => line.label },
      { said: prediction, order: "prediction", cell: (line) => this.predictionCell(line) },
      { said: "Explained", order: "target", cell: (line) => line.target },
      { said: "Value", order: "value", number: true, cell: (line) => decimal(line.value) },
      { said: size, order: "size", number: true, cell: (line) => line.size && String(line.size) },
      { said: "Confidence", order: "confidence", number: true, cell: (line) => decimal(line.confidence) },
      { said: `Top ${this.run.unit}s`, cell: (line) => strongest(line.strongest) },
      { said: "Decided by", order: "top", cell: (line) => line.top && make("bdi", {}, line.top) },
      { said: `${upper(this.run.unit)}s`, order: "units", number: true, cell: (line) => String(line.units) },
      ...this.run.metrics.map(({ label }) => ({ said: label, order: label, number: true, cell: (line) => decimal([line.scores[label]].flat()[0]) })),
    ];
    const missing = [this.run.labelled ? "" : "Label", ...(this.run.explained ? [] : [text, "Confidence", `Top ${this.run.unit}s`, "Decided by"])];
    const has = (name) => lines.some((line) => line[name] !== null);
    if (!has("value")) missing.push("Value");
    else missing.push("Confidence");
    if (isWritten(this.run)) missing.push("Confidence", "Decided by");
    else missing.push(size);
    return columns.filter((column) => !missing.includes(column.said));
  }

  textCell(line) {
    const whole = [line.text ?? ""].flat().join(" / ");
    const points = Array.from(whole);
    const said = points.length > SHOWN ? `${points.slice(0, SHOWN).join("")}…` : whole;
    const own = String(line.number) === this.state.number;
    return button(said, () => this.openMap(line.number), { dir: "auto", class: "out text-out", "aria-current": own ? "true" : null });
  }

  /** Wrong predictions are marked by more than a colour. */
  predictionCell(line) {
    const wrong = line.label !== null && line.label !== line.prediction;
    return wrong ? make("b", {}, `${line.prediction} ✗`) : make("bdi", {}, line.prediction);
  }

  async openMap(number) {
    this.state = { ...this.state, number: String(number) };
    this.isChoice = true;
    await this.refresh();
    this.places.map.querySelector("article")?.scrollIntoView({ block: "nearest" });
  }

  async showMap(number, stale) {
    this.places.trust.replaceChildren();
    if (number === undefined) return this.places.map.replaceChildren();
    const explanation = await this.ask("runs/explanation", { ...this.place, number });
    const article = await this.article(explanation, `Text ${Number(number) + 1}`);
    if (stale()) return;
    article.append(exportMenu(codeOf(explanation), [explanation], this.linked ? location.href : null, this.ask));
    exchangeContent(this.places.map, article);
    if (isWritten(this.run)) return this.offerEdit(article, explanation, await this.servedAs(explanation.model));
    const told = await this.ask("runs/trust", { ...this.place, number });
    if (!stale()) this.offerEdit(article, explanation, told.model);
    // Of parts that were named only the texts are known here.
    const checks = told.model !== null && explanation.unit !== "part";
    const check = () => this.ask("check", { model: told.model, ...requestOf(explanation) });
    if (!stale()) this.places.trust.replaceChildren(trustView(told, checks ? check : null));
  }

  /** A model's name if it is served here under its own; null otherwise. */
  async servedAs(name) {
    if (!this.linked) return null;
    const { models } = await this.ask("models", {}).catch(() => ({ models: [] }));
    return models.some((model) => model.name === name) ? name : null;
  }

  /** The link to the page on which this text can be changed: with the same model, or not at all. */
  offerEdit(article, explanation, model) {
    const link = this.linked && model !== null ? editLink(explanation, model) : null;
    if (link) article.append(make("p", {}, make("a", { href: link }, "Edit this text")));
    else if (this.linked && model === null) article.append(make("p", { class: "soft" }, "No model of this name is served here, so the text cannot be edited."));
  }

  /** The map of a prediction, of what was written, or of what an answer rests on. */
  async article(explanation, heading) {
    if (explanation.statements) return paintedCitations(await this.ask("view/citations", { citations: explanation }), heading);
    if (explanation.tokens) {
      const view = await this.ask("view/output", { explanation });
      const span = (first, last) => this.ask("view/span", { explanation, first, last }).catch((error) => this.say(error.message));
      return paintedOutput(view, heading, { span, held: () => {} });
    }
    const { views } = await this.ask("view", { explanations: [explanation] });
    return painted(views[0], heading, null);
  }

  say(message) {
    this.places.status.replaceChildren(make("p", { class: "raison told" }, message));
  }

  /** Nothing is shown beside an error: the texts are those of another question. */
  fail(message) {
    this.places.table.replaceChildren();
    this.places.map.replaceChildren();
    this.places.trust.replaceChildren();
    this.places.status.replaceChildren(make("p", { class: "raison told warning" }, message));
  }
}

/** What of a state is set. */
function known(state) {
  return Object.fromEntries(Object.entries(state).filter(([, value]) => value !== undefined && value !== ""));
}

/** Units with their scores. */
function strongest(units) {
  const parts = units.flatMap(({ text, said }, place) => {
    const comma = place < units.length - 1 ? "," : "";
    return [place ? " " : "", make("span", { class: "strong-one" }, make("bdi", { translate: "no" }, text), ` ${said}${comma}`)];
  });
  return parts.length ? make("span", {}, ...parts) : null;
}

/** Show the runs of a server. `ask(path, values)` gives the answer of a request. */
export function renderRows({ ask, el }) {
  return new Rows(ask, el, true);
}

/** A list that a notebook's kernel holds, over its messages. */
export function listed(model, el) {
  const talk = talker(model);
  const rows = new Rows(talk.ask, el, false);
  const close = () => {
    rows.close();
    talk.close();
  };
  return { root: rows.root, close };
}
