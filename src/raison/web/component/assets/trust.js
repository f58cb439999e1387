// Trust beside a map: what an audit found, what the map's own numbers say, and tests of this text on demand.
import { button, make } from "./elements.js";
import { decimal, percentOf } from "./tables.js";

const LIGHTS = { green: "●", amber: "▲", red: "■", grey: "○" };

/** The part of the page that says how far a map can be trusted. `check()` gives the answer of its tests. */
export function trustView(told, check) {
  const mark = told.light ? make("span", { class: `light ${told.light}`, "aria-hidden": "true" }, `${LIGHTS[told.light]} `) : null;
  const place = make("div", { role: "status" });
  let testing = false;
  const test = async () => {
    if (testing) return;
    testing = true;
    await run(check, place);
    testing = false;
  };
  const view = make(
    "section",
    { class: "raison trust", "aria-label": "Trust" },
    make("p", {}, mark, `${told.lead}.`),
    facts([...told.findings, ...told.facts]),
    check ? make("div", { class: "row" }, button("Check this one", test)) : null,
    place,
  );
  return view;
}

async function run(check, place) {
  place.replaceChildren(make("p", {}, "Testing this text."));
  try {
    place.replaceChildren(facts(results(await check())));
  } catch (error) {
    place.replaceChildren(...(error.isDropped ? [] : [make("p", { class: "warning" }, error.message)]));
  }
}

function results({ remaining, removed, shuffled, harmless, why }) {
  const steps = removed.map((unit, place) => `without ${place ? "also " : ""}“${unit}” ${decimal(remaining[place + 1])}`);
  const random = shuffled
    ? `removing the strongest fifth moves the value by ${decimal(shuffled.own)}; with the same scores shuffled by ${decimal(shuffled.shuffled)} on average; ${percentOf(shuffled.p)} of all ${shuffled.maps + 1} maps do at least as much as this one`
    : "nothing to shuffle: fewer than three units, or equal scores";
  return [
    { name: "Strongest removed", said: [`whole text ${decimal(remaining[0])}`, ...steps].join(", ") },
    { name: "Random control", said: random },
    { name: "Harmless changes", said: harmless === null ? why || "no harmless change applies to this text" : `rank correlation with the maps of changed texts ${decimal(harmless, 2)}` },
  ];
}

function facts(known) {
  const list = make("dl");
  for (const { name, said } of known) list.append(make("dt", {}, name), make("dd", {}, said));
  return list;
}
