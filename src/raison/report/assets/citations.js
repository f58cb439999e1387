// Without this script the colours are those of the first statement.
import { liveCitations } from "./cited.js";

for (const article of document.querySelectorAll("article.citations")) {
  liveCitations(article, JSON.parse(article.querySelector('script[type="application/json"]').textContent));
}
