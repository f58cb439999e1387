// The history of states with undo, the comparison with an earlier one, and links that hold a state.
import { button, make } from "./elements.js";

/** States in their order, and where in it we are; each is {settings, explanation}. */
export class StateHistory {
  /** `about(settings)` is what settings ask about: what differs in it stands beside each other. */
  constructor(about) {
    this.about = (settings) => JSON.stringify(about(settings));
    this.entries = [];
    this.place = -1;
  }

  get now() {
    return this.entries[this.place];
  }

  /** The last state before this one that asked about something else. */
  get before() {
    if (!this.now) return undefined;
    const own = this.about(this.now.settings);
    return this.entries.slice(0, this.place).findLast((entry) => this.about(entry.settings) !== own);
  }

  /** The names of the settings that are not the same in all states. */
  get varied() {
    const names = Object.keys(this.now?.settings ?? {});
    return names.filter((name) => new Set(this.entries.map((entry) => JSON.stringify(entry.settings[name]))).size > 1);
  }

  /** A new state behind the present one; what was undone is gone. The same state again is no new one. */
  add(entry) {
    if (this.now && JSON.stringify(this.now.settings) === JSON.stringify(entry.settings)) {
      this.entries[this.place] = entry;
      return;
    }
    this.entries.splice(this.place + 1, Infinity, entry);
    this.place = this.entries.length - 1;
  }

  /** The state a number of steps away, which becomes the current one; nothing if there is none. */
  step(count) {
    if (!this.entries[this.place + count]) return undefined;
    this.place += count;
    return this.now;
  }
}

/** What the present state is compared with, and what stands over the two; nothing where it stands alone, and only a
 * `warning` where it is refused. `compared` is {with, value}, `explain(settings)` explains. */
export async function beside(past, compared, settings, explain) {
  const { with: sort, value } = compared;
  if (sort === "before") {
    const before = past.before;
    return before && { heading: "Before", own: "Now", explanation: before.explanation };
  }
  if (sort === "nothing" || value === null) return undefined;
  const heading = [value].flat().join(" / ");
  try {
    const explanation = await explain({ ...settings, [sort]: value });
    return { heading, own: [settings[sort] ?? "what is predicted"].flat().join(" / "), explanation };
  } catch (error) {
    return { warning: `Beside it (${heading}): ${error.message}` };
  }
}

/** Undo, redo and all states. `said(settings, varied)` names one, with the settings that differ among all;
 * `undo(count)` and `visit(count)` move by `count` states; `isAhead` says that what is asked is none of them, so that the
 * last one is a step back. */
export function historyRow(past, said, { undo, visit }, isAhead) {
  const { entries, place } = past;
  const list = make("ol");
  const varied = past.varied;
  entries.forEach((entry, number) => {
    const one = button(said(entry.settings, varied), () => visit(number - place), { "aria-current": number === place ? "step" : null });
    list.append(make("li", {}, one));
  });
  return make(
    "div",
    { class: "row" },
    button("Undo", () => undo(-1), { "aria-disabled": String(place < 1 && !isAhead) }),
    button("Redo", () => undo(1), { "aria-disabled": String(place > entries.length - 2) }),
    make("details", {}, make("summary", {}, `History: ${entries.length}`), list),
  );
}

/** Ctrl+Z and Ctrl+Shift+Z outside of a field. */
export function undoKey(event, go) {
  const typing = event.target.closest?.("input, textarea, select");
  if (typing || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
  event.preventDefault();
  go(event.shiftKey ? 1 : -1);
}

const LISTS = ["text", "target"];

/** A state as what follows # in an address. */
export function toHash(settings, compared) {
  const held = new URLSearchParams();
  const named = { ...settings, with: compared.with, than: compared.value };
  for (const [name, value] of Object.entries(named)) {
    for (const one of [value].flat()) if (![null, undefined, false, 0].includes(one)) held.append(name, one);
  }
  return "#" + held;
}

/** The state that an address holds; nothing where it holds none. */
export function fromHash(hash, names) {
  const held = new URLSearchParams(hash.slice(1));
  if (!held.has("text")) return undefined;
  const settings = {};
  for (const name of names) {
    const values = held.getAll(name);
    // A text is never cut off because the page did so before.
    if (name === "truncate") settings[name] = values[0] === "true";
    else if (name === "seed" && values.length) settings[name] = Number(values[0]);
    else if (values.length) settings[name] = LISTS.includes(name) && values.length > 1 ? values : values[0];
  }
  return { settings, compared: comparedIn(held) };
}

/** What follows # in an address: the parameters, and the comparison after them. */
export function addressOf(held, compared) {
  held.append("with", compared.with);
  if (compared.value !== null) held.append("than", compared.value);
  return "#" + held;
}

/** What the parameters of an address say of the comparison. */
export function comparedIn(held) {
  const than = held.getAll("than");
  return { with: held.get("with") ?? "before", value: than.length > 1 ? than : (than[0] ?? null) };
}
