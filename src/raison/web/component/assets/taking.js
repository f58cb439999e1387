// What can be taken away: the call that makes an explanation, and the explanation itself.
import { button, make } from "./elements.js";
import { stringsOf } from "./texts.js";

/** The Python call that makes the explanation of these settings. */
export function code(settings) {
  const text = Array.isArray(settings.text) ? `(${stringsOf(settings.text).map(quoted).join(", ")})` : quoted(settings.text);
  const named = { method: settings.method, unit: settings.unit, target: settings.target, of: settings.of };
  const options = Object.entries(named)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `, ${name}=${Array.isArray(value) ? `(${value.map(quoted).join(", ")})` : quoted(value)}`);
  return `raison.explain(model, ${text}${options.join("")})`;
}

/** A string as Python writes it: JSON's form, which Python reads alike. */
function quoted(string) {
  return JSON.stringify(string);
}

/** The part of the page from which things are taken; `link` is null where no address holds the state. */
export function taking(settings, explanation, link) {
  const said = make("span", { role: "status", class: "soft" });
  const copy = (what, name) => async () => {
    try {
      await navigator.clipboard.writeText(what);
      said.textContent = `${name} copied`;
    } catch {
      said.textContent = `${name} could not be copied: select it by hand`;
    }
  };
  const call = code(settings);
  const buttons = make("div", { class: "row" }, button("Copy as code", copy(call, "Code")));
  if (link) buttons.append(button("Copy link", copy(link, "Link")));
  buttons.append(button("Download JSON", () => download("explanation.json", JSON.stringify(explanation, null, 1), "application/json")), said);
  const shown = make("pre", { tabindex: "0", role: "region", "aria-label": "Code" }, make("code", {}, call));
  return make("details", { class: "taking" }, make("summary", {}, "Take away"), buttons, shown);
}

function download(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const anchor = make("a", { href: address, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
