// Export: the call that makes what is on screen, and what is on screen as a file.
import { button, make } from "./elements.js";

const FILES = { PNG: "png", SVG: "svg", HTML: "html", LaTeX: "tex", JSON: "json" };
const PAGES = ["html", "json"];

/** The part of the page from which things are taken; `link` is null where no address holds the state, `pythonCall` where
 * none makes what is seen.
 * `results` are what is seen, the own one last; `ask` makes files of them. */
export function exportMenu(pythonCall, results, link, ask) {
  const said = make("span", { role: "status", class: "soft" });
  const copy = (what, name) => async () => {
    try {
      await navigator.clipboard.writeText(what);
      said.textContent = `${name} copied`;
    } catch {
      said.textContent = `${name} could not be copied: select it by hand`;
    }
  };
  const buttons = make("div", { class: "row" });
  if (pythonCall) buttons.append(button("Copy as code", copy(pythonCall, "Code")));
  if (link) buttons.append(button("Copy link", copy(link, "Link")));
  const own = results.at(-1);
  const kinds = Object.entries(FILES).filter(([, kind]) => PAGES.includes(kind) || !own.statements);
  const save = (kind) => async () => {
    try {
      // An image is one map; a page or a list holds all that are seen.
      const file = await ask("view/file", { results: PAGES.includes(kind) ? results : [own], kind });
      download(file);
      said.textContent = `${file.name} saved`;
    } catch (error) {
      said.textContent = error.message;
    }
  };
  buttons.append(...kinds.map(([name, kind]) => button(name, save(kind), { "aria-label": `Download ${name}` })), said);
  const shown = pythonCall ? [make("pre", { tabindex: "0", role: "region", "aria-label": "Code" }, make("code", {}, pythonCall))] : [];
  return make("details", { class: "taking" }, make("summary", {}, "Take away"), buttons, ...shown);
}

function download({ name, type, content }) {
  const bytes = Uint8Array.from(atob(content), (one) => one.charCodeAt(0));
  const address = URL.createObjectURL(new Blob([bytes], { type }));
  const anchor = make("a", { href: address, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
