// Without this script the explanations of a page stand one below the other; with it, those that are ticked in their list
// stand beside each other, alone, and on one scale where they have one. Of two on one text it says how far they agree.
const articles = [...document.getElementById("explanations").children];
const list = document.querySelector("nav.listing");
// The scale is null where they have none in common; `alike` has a line for every two of one text, by their places.
const { scale, alike } = JSON.parse(list.querySelector('script[type="application/json"]').textContent);

/** An article on the common scale, or as the page came. */
function onScale(article, shown) {
  article.querySelectorAll(".text .unit").forEach((unit, place) => {
    unit.style.cssText = scale.palette[shown?.shades[place]] ?? "";
  });
  article.querySelectorAll(".bar").forEach((bar, place) => {
    bar.style.width = shown?.widths[place] ?? "";
  });
  for (const end of ["low", "high"]) {
    const number = article.querySelector(`.legend .${end}`);
    number.dataset.own ??= number.textContent;
    number.textContent = shown?.[end] ?? number.dataset.own;
  }
}

function arrange() {
  const chosen = articles.filter((_, place) => ticks[place].checked);
  const beside = chosen.length > 1;
  articles.forEach((article, place) => {
    article.hidden = chosen.length > 0 && !chosen.includes(article);
    if (scale) onScale(article, beside ? scale.shown[place] : undefined);
  });
  document.getElementById("explanations").classList.toggle("raison-beside", beside);
  const on = scale ? "on the scale of the largest score of all" : "each on a scale of its own";
  const said = beside ? `${chosen.length} explanations beside each other, ${on}.` : "Explanations that are ticked stand beside each other.";
  const pair = chosen.length === 2 ? alike[chosen.map((article) => articles.indexOf(article)).join(" ")] : undefined;
  list.querySelector(".together").textContent = pair ? `${said} ${pair}.` : said;
}

const ticks = [...list.querySelectorAll("tbody tr")].map((row, place) => {
  const tick = document.createElement("input");
  tick.type = "checkbox";
  tick.setAttribute("aria-label", `Beside others: No. ${place + 1}`);
  tick.addEventListener("change", arrange);
  row.cells[0].append(tick);
  row.querySelector("a").addEventListener("click", () => {
    if (!articles[place].hidden) return;
    for (const one of ticks) one.checked = false;
    arrange();
  });
  return tick;
});
arrange();
