// A page that has a model as anywidget gives it: values, changes, messages. Python answers them.
import component from "./component.js";

const values = await window.initial();
const listeners = new Map();
const emit = (name, value) => [...(listeners.get(name) ?? [])].forEach((listener) => listener(value));

const model = {
  get: (name) => values[name],
  set(name, value) {
    if (JSON.stringify(values[name]) === JSON.stringify(value)) return;
    values[name] = value;
    emit(`change:${name}`, value);
  },
  save_changes: () => {},
  on: (name, listener) => listeners.set(name, [...(listeners.get(name) ?? []), listener]),
  off: (name, listener) => listeners.set(name, (listeners.get(name) ?? []).filter((one) => one !== listener)),
  send: (message) => window.asked(message).then((answer) => emit("msg:custom", answer)),
};

window.model = model;
window.leave = component.render({ model, el: document.getElementById("here") });
