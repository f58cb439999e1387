// What was looked at before: a history with undo, and a link that holds a state.

/** States in their order, and where in it we are. */
export class Past {
  constructor() {
    this.entries = [];
    this.place = -1;
  }

  get now() {
    return this.entries[this.place];
  }

  /** The last state before this one that another text was explained in. */
  get before() {
    const text = JSON.stringify(this.now?.settings.text);
    return this.entries.slice(0, this.place).findLast((entry) => JSON.stringify(entry.settings.text) !== text);
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

  /** The state so many steps away, which becomes the present one; nothing where there is none. */
  step(count) {
    if (!this.entries[this.place + count]) return undefined;
    this.place += count;
    return this.now;
  }
}

const LISTS = ["text", "target"];

/** A state as what follows # in an address. */
export function toHash(settings, compared) {
  const held = new URLSearchParams();
  const named = { ...settings, with: compared.with, than: compared.value };
  for (const [name, value] of Object.entries(named)) {
    for (const one of [value].flat()) if (one !== null && one !== undefined) held.append(name, one);
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
    if (values.length) settings[name] = LISTS.includes(name) && values.length > 1 ? values : values[0];
  }
  const than = held.getAll("than");
  return { settings, compared: { with: held.get("with") ?? "before", value: than.length > 1 ? than : (than[0] ?? null) } };
}
