// Without this script all explanations stand one below the other; with it, one is shown at a time.
const tabs = [...document.querySelectorAll("nav.tabs a")];

function choose(chosen) {
  for (const tab of tabs) {
    const own = tab === chosen;
    tab.setAttribute("aria-selected", String(own));
    tab.tabIndex = own ? 0 : -1;
    document.querySelector(tab.getAttribute("href")).hidden = !own;
  }
}

function named(hash) {
  return tabs.find((tab) => tab.getAttribute("href") === hash);
}

document.querySelector("nav.tabs .output").setAttribute("role", "tablist");
tabs.forEach((tab, place) => {
  const panel = document.querySelector(tab.getAttribute("href"));
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", panel.id);
  panel.setAttribute("role", "tabpanel");
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
