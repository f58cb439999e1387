// Runs on the server's page: the component's tables, whose questions are requests.
import component from "./component.js";
import { answered, posted } from "./connection.js";

const ask = (path, values) => (path.startsWith("view") || path === "check" ? posted(`/api/${path}`, values) : answered(`/api/${path}?${new URLSearchParams(values)}`));

component.renderRows({ ask, el: document.getElementById("here") });
