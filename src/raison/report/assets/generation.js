// Without this script the colours are those of the whole output.
import { liveOutput } from "./output.js";

for (const article of document.querySelectorAll("article.generation")) {
  liveOutput(article, JSON.parse(article.querySelector('script[type="application/json"]').textContent));
}
