// Find an expected document by title or name, and show its funnel.
const WAIT = 140;  // ms after the last letter

function optionOf(found, place) {
  return make("li", { role: "option", id: `expected${place}`, "aria-selected": "false", "data-place": place },
    make("span", { class: "name", dir: "auto" }, found.title), make("span", { class: "quiet where", dir: "auto" }, found.where));
}

function pick(view, place) {
  view.at = Math.max(0, Math.min(place, view.found.length - 1));
  view.list.querySelectorAll("[role=option]").forEach((option, number) => {
    option.setAttribute("aria-selected", String(number === view.at));
    if (number === view.at) option.scrollIntoView({ block: "nearest" });
  });
  if (view.found.length) view.box.setAttribute("aria-activedescendant", `expected${view.at}`);
  else view.box.removeAttribute("aria-activedescendant");
}

function offer(view, found, said) {
  view.found = found;
  view.list.replaceChildren(...found.map(optionOf));
  view.list.hidden = found.length === 0;
  view.box.setAttribute("aria-expanded", String(found.length > 0));
  view.said.textContent = said;
  pick(view, 0);
}

async function askDocuments(view) {
  const wanted = view.box.value.trim(), number = (view.asked = (view.asked ?? 0) + 1);
  if (!wanted) return offer(view, [], "");
  let found = [], said = "";
  try {
    const answer = await fetch(new URL(`find/documents?q=${encodeURIComponent(wanted)}`, document.baseURI));
    const rows = await answer.json();
    if (answer.ok) found = rows;
    else said = rows.error;
  } catch {
    said = "The server is not responding. Try again in a moment.";
  }
  if (number !== view.asked) return undefined;
  return offer(view, found, said || (found.length ? `${found.length}${found.length === 20 ? " or more" : ""} documents` : "No document has these words in its title, path or URL."));
}

function expect(root, view, place) {
  const chosen = view.found[place];
  if (!chosen) return;
  view.box.value = chosen.title;
  offer(view, [], "Tracing it through the strategy…");
  view.awaited = chosen.id;
  root.send("expect", chosen.id);
}

function listenForExpected(root, view) {
  let timer = 0;
  view.box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => askDocuments(view), WAIT);
  });
  view.box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && view.found.length) pick(view, view.at + step);
    else if (event.key === "Enter" && view.found.length) expect(root, view, view.at);
    else if (event.key === "Enter") askDocuments(view);
    else if (event.key === "Escape" && view.found.length) offer(view, [], "");
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  view.list.addEventListener("mousedown", (event) => event.preventDefault());
  view.list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) expect(root, view, Number(option.dataset.place));
  });
}

function expectedSection(root) {
  const box = make("input", { type: "text", role: "combobox", "aria-expanded": "false", "aria-controls": "expected", "aria-autocomplete": "list", "aria-label": "Expected document", placeholder: "Title or file name", autocomplete: "off", spellcheck: "false" });
  const list = make("ul", { id: "expected", role: "listbox", "aria-label": "Documents", hidden: true });
  const said = make("p", { class: "sub", role: "status" }), funnel = make("div", { class: "fell" });
  const view = { box, list, said, funnel, found: [], at: 0 };
  listenForExpected(root, view);
  root.expected = view;
  return make("section", { class: "part expected" }, make("h3", {}, "Find an expected document"), make("p", { class: "sub" }, "See where this strategy dropped it."), box, list, said, funnel);
}
