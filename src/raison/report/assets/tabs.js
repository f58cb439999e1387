// Without this script all explanations stand one below the other; with it, one is shown at a time.
const tabs = [...document.querySelectorAll("nav.tabs a")];
const panels = new Map(tabs.map((tab) => [tab, panelOf(document.querySelector(tab.getAttribute("href")))]));

/** An article is no panel, but may lie in one. */
function panelOf(article) {
  const panel = document.createElement("div");
  panel.id = `${article.id}-panel`;
  panel.setAttribute("role", "tabpanel");
  article.replaceWith(panel);
  panel.append(article);
  return panel;
}

function choose(chosen) {
  for (const tab of tabs) {
    const own = tab === chosen;
    tab.setAttribute("aria-selected", String(own));
    tab.tabIndex = own ? 0 : -1;
    panels.get(tab).hidden = !own;
  }
}

function named(hash) {
  return tabs.find((tab) => tab.getAttribute("href") === hash);
}

document.querySelector("nav.tabs .output").setAttribute("role", "tablist");
tabs.forEach((tab, place) => {
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", panels.get(tab).id);
  tab.addEventListener("click", (event) => {
    event.preventDefault();
    choose(tab);
  });
  tab.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1 };
    const next = tabs[steps[event.key]];
    if (!next) return;
    event.preventDefault();
    choose(next);
    next.focus();
  });
});
for (const link of document.querySelectorAll("table.matrix a")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    choose(named(link.getAttribute("href")));
  });
}
choose(named(location.hash) ?? tabs[0]);
