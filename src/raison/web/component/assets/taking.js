// What can be taken away: the call that makes an explanation, and the explanation itself.
import { button, make } from "./elements.js";

/** The Python call that makes the explanation of these settings. */
export function code({ text, method, unit, target, of }) {
  return call("explain", text, { method, unit, target, of });
}

/** The Python call of a function: what it is about, and the options that are given. */
export function call(name, about, options) {
  const given = Object.entries(options).filter(([, value]) => value !== null && value !== undefined);
  return `raison.${name}(model, ${[python(about), ...given.map(([key, value]) => `${key}=${python(value)}`)].join(", ")})`;
}

/** A value as Python writes it: JSON's form, which Python reads alike, and a pair of strings as a tuple. */
function python(value) {
  const strings = Array.isArray(value) && value.every((one) => typeof one === "string");
  return strings ? `(${value.map(python).join(", ")})` : JSON.stringify(value);
}

/** The part of the page from which things are taken; `link` is null where no address holds the state. */
export function taking(pythonCall, explanation, link) {
  const said = make("span", { role: "status", class: "soft" });
  const copy = (what, name) => async () => {
    try {
      await navigator.clipboard.writeText(what);
      said.textContent = `${name} copied`;
    } catch {
      said.textContent = `${name} could not be copied: select it by hand`;
    }
  };
  const buttons = make("div", { class: "row" }, button("Copy as code", copy(pythonCall, "Code")));
  if (link) buttons.append(button("Copy link", copy(link, "Link")));
  buttons.append(button("Download JSON", () => download("explanation.json", JSON.stringify(explanation, null, 1), "application/json")), said);
  const shown = make("pre", { tabindex: "0", role: "region", "aria-label": "Code" }, make("code", {}, pythonCall));
  return make("details", { class: "taking" }, make("summary", {}, "Take away"), buttons, shown);
}

function download(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const anchor = make("a", { href: address, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
