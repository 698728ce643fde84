// A failed column shows the error and a remedy: scopes to choose from, or a button that removes it.
const SCOPE_WORDS = { project: "Projects", source: "Sources" };

function failureHead(failure) {
  return make("header", { class: `head hue-${failure.hue}` },
    make("div", { class: "name" }, shape(failure), make("h2", {}, failure.title), make("span", { class: "time quiet" }, "failed")),
    make("div", { class: "stages", "aria-hidden": "true" }));
}

function failureColumn(failure) {
  const groups = Object.entries(failure.scopes).filter(([, places]) => places.length > 0);
  return make("div", { class: "column failure", role: "group", "aria-label": `${failure.title} failed` },
    make("p", { class: "said" }, failure.text),
    groups.length ? scopePicker(failure, groups) : null,
    make("button", { type: "button", class: "remedy", "data-reset": failure.strategy }, `Remove ${failure.title}`));
}

function scopePicker(failure, groups) {
  const picker = make("select", { class: "scopes", "aria-label": `Search in, for ${failure.title}` }, make("option", { value: "" }, "Search in…"),
    groups.map(([kind, places]) => make("optgroup", { label: SCOPE_WORDS[kind] },
      places.map((place) => make("option", { value: JSON.stringify({ kind, id: place.id }) }, place.title)))));
  return make("label", { class: "pickscope" }, "Choose a project or source:", picker);
}

function listenForRemedies(root) {
  root.addEventListener("change", (event) => {
    if (event.target.matches?.("select.scopes") && event.target.value) root.send("scope", JSON.parse(event.target.value));
  });
  root.addEventListener("click", (event) => {
    const remedy = event.target.closest(".remedy");
    if (remedy) root.send("reset", remedy.dataset.reset);
  });
}
