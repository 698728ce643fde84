// Ctrl+K or Cmd+K: search pages and controls of this page, and everything the server finds by name.
const FOLLOWING = ["kind", "project", "folder", "tag", "source", "language", "index"];
const WAIT = 120;  // ms after the last key

function pagesNow(wanted) {
  const links = [...document.querySelectorAll('[data-testid="stTopNavLink"], [data-testid="stSidebarNavLink"]')];
  const named = links.map((link) => ({ kind: "Page", title: link.textContent.trim(), link }));
  return named.filter((page, place) => page.title.toLowerCase().includes(wanted.toLowerCase())
    && named.findIndex((one) => one.title === page.title) === place);
}

// Scope and index are kept from page to page.
function addressOf(find) {
  const to = new URL(find.href, document.baseURI), here = new URLSearchParams(window.location.search);
  for (const name of FOLLOWING) {
    if (!to.searchParams.has(name)) here.getAll(name).forEach((value) => to.searchParams.append(name, value));
  }
  return to.href;
}

function go(dialog, find) {
  dialog.close();
  if (find.act) find.act();
  else if (find.link) find.link.click();
  else window.location.href = addressOf(find);
}

function choose(view, place) {
  view.at = Math.max(0, Math.min(place, view.finds.length - 1));
  view.list.querySelectorAll("[role=option]").forEach((option, number) => {
    option.setAttribute("aria-selected", String(number === view.at));
    if (number === view.at) option.scrollIntoView({ block: "nearest" });
  });
  view.box.setAttribute("aria-activedescendant", `find${view.at}`);
}

function show(view, finds) {
  view.finds = finds;
  view.list.replaceChildren(...finds.map((find, place) => {
    const option = make("li", { role: "option", id: `find${place}`, "aria-selected": "false" }, make("span", { class: "kind" }, find.kind), make("span", {}, find.title));
    option.addEventListener("click", () => go(view.dialog, find));
    option.addEventListener("mousemove", () => { if (view.at !== place) choose(view, place); });
    return option;
  }));
  choose(view, 0);
}

async function ask(view) {
  const wanted = view.box.value.trim(), number = (view.asked = (view.asked ?? 0) + 1);
  const pages = pagesNow(wanted), here = controlsNow(wanted);
  let finds = [];
  try {
    const answer = await fetch(new URL(`find?q=${encodeURIComponent(wanted)}`, document.baseURI));
    finds = answer.ok ? await answer.json() : [];
  } catch {
    finds = [];  // the server is down; the pages are still listed
  }
  if (number === view.asked) show(view, wanted ? [...here, ...pages, ...finds] : [...pages, ...here, ...finds]);
}

// Enter applies to the current text, not to the previous list.
async function enter(view) {
  if (view.timer) {
    clearTimeout(view.timer);
    view.timer = 0;
    view.asking = ask(view);
  }
  await view.asking;
  if (view.dialog.open && view.finds[view.at]) go(view.dialog, view.finds[view.at]);
}

function paletteDialog(root) {
  const box = make("input", { type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "finds", "aria-label": "Find", placeholder: "Find a page, control, document, source, test set, experiment or action", autocomplete: "off", spellcheck: "false" });
  const list = make("ul", { id: "finds", role: "listbox", "aria-label": "Results" });
  const dialog = make("dialog", { class: "palette", "aria-label": "Find" }, box, list);
  const view = { dialog, box, list, finds: [], at: 0, timer: 0, asking: null };
  box.addEventListener("input", () => {
    clearTimeout(view.timer);
    view.timer = setTimeout(() => { view.timer = 0; view.asking = ask(view); }, WAIT);
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) choose(view, view.at + step);
    else if (event.key === "Enter") enter(view);
    else return;
    event.preventDefault();
  });
  closeOnBackdrop(dialog);
  root.append(dialog);
  return { open() { box.value = ""; dialog.showModal(); view.asking = ask(view); } };
}
