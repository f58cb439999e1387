// What a language model is asked: one prompt, or the messages of a chat with their roles.
import { button, choice, field, make } from "./elements.js";

const ROLES = ["system", "user", "assistant", "tool"];

/** Whether nothing is asked. */
export function isBlank(prompt) {
  return typeof prompt === "string" ? !prompt.trim() : prompt.every(({ content }) => !content.trim());
}

/** The controls of a prompt. `change(prompt, typed)` is called with what becomes of it. */
export function promptEditor(prompt, chats, change) {
  if (typeof prompt === "string") {
    const other = chats ? button("Make it a chat", () => change([{ role: "user", content: prompt }], false)) : null;
    return [area("Prompt", prompt, (text) => change(text, true)), other];
  }
  const put = (place, changes, typed) => change(prompt.map((one, number) => (number === place ? Object.assign(one, changes) : one)), typed);
  const parts = prompt.map((message, place) => {
    const said = prompt.length > 1 ? ` ${place + 1}` : "";
    const remove = prompt.length > 1 ? button("Remove", () => change(prompt.toSpliced(place, 1), false), { "aria-label": `Remove message${said}` }) : null;
    return make(
      "div",
      { class: "message", role: "group", "aria-label": `Message${said}` },
      choice("Role", ROLES.map((role) => [role, role]), message.role, (role) => put(place, { role }, true)),
      area("Message", message.content, (content) => put(place, { content }, true)),
      remove,
    );
  });
  const next = prompt.at(-1).role === "user" ? "assistant" : "user";
  const add = button("Add a message", () => change([...prompt, { role: next, content: "" }], false));
  const one = button("Make it one prompt", () => change(prompt.map(({ content }) => content).join("\n"), false));
  return [...parts, make("div", { class: "row" }, add, one)];
}

/** A text area with its label; `typed(text)` is called while one types. */
export function area(label, text, typed) {
  const control = make("textarea", { rows: "2", dir: "auto", lang: "", spellcheck: "false" });
  control.value = text;
  control.addEventListener("input", () => typed(control.value));
  return field(label, control, { class: "field long" });
}

/** A field for a whole number. */
export function count(label, value, most, typed) {
  const control = make("input", { type: "number", min: "1", max: String(most), required: true });
  control.value = value;
  control.addEventListener("input", () => typed(control.valueAsNumber));
  return field(label, control);
}
