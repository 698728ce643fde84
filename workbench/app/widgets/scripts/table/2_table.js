const ON_A_PAGE = 50;

// Every word of the filter must be part of the row's texts, or a whole word of a column of whole words.
function matches(columns, row, words) {
  const texts = (whole) => columns.filter((column) => column.whole === whole).map((column) => wordsOf(row.cells[column.name], column.kind)).join(" ").toLowerCase();
  const parts = `${texts(false)} ${Object.values(row.notes ?? {}).join(" ")}`.toLowerCase();
  const whole = new Set(texts(true).split(/[\s,/]+/));
  return words.every((word) => parts.includes(word) || whole.has(word));
}

function visible(view) {
  const { data, filter, sort, down } = view;
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const kept = words.length ? data.rows.filter((row) => matches(data.columns, row, words)) : data.rows;
  const column = data.columns.find((one) => one.name === sort);
  if (!column) return kept;
  const sorted = [...kept].sort((a, b) => compare(orderOf(a.cells[sort], column.kind), orderOf(b.cells[sort], column.kind)));
  return down ? sorted.reverse() : sorted;
}

function headings(view, rows, redraw) {
  const cells = view.data.columns.map((column) => {
    const active = view.sort === column.name;
    const button = make("button", { type: "button" }, column.label, make("span", { class: "arrow", "aria-hidden": "true" }, active ? (view.down ? " ↓" : " ↑") : ""));
    button.addEventListener("click", () => {
      view.down = active ? !view.down : isNumeric(column);
      view.sort = column.name;
      redraw();
      view.root.querySelector(`[data-column="${CSS.escape(column.name)}"] button`)?.focus();
    });
    return make("th", { scope: "col", "data-column": column.name, class: isNumeric(column) ? "number" : null,
      "aria-sort": active ? (view.down ? "descending" : "ascending") : "none" }, button);
  });
  if (view.data.selectable) {
    const all = make("input", { type: "checkbox", "aria-label": "Select all shown" });
    all.checked = rows.length > 0 && rows.every((row) => view.selected.has(row.id));
    all.addEventListener("change", () => {
      rows.forEach((row) => (all.checked ? view.selected.add(row.id) : view.selected.delete(row.id)));
      redraw(true);
    });
    cells.unshift(make("th", { class: "pick" }, all));
  }
  return make("thead", {}, make("tr", {}, cells));
}

function line(view, row, redraw) {
  const cells = view.data.columns.map((column, place) => cell(column, row, place, view.data.opens ? view.open : null));
  if (view.data.selectable) {
    const pick = make("input", { type: "checkbox", "aria-label": `Select ${row.name}` });
    pick.checked = view.selected.has(row.id);
    pick.addEventListener("change", () => {
      if (pick.checked) view.selected.add(row.id);
      else view.selected.delete(row.id);
      redraw(true, row.id);
    });
    cells.unshift(make("td", { class: "pick" }, pick));
  }
  return make("tr", { "data-id": row.id, class: view.selected.has(row.id) ? "chosen" : null }, cells);
}

function pager(view, count, redraw) {
  const pages = Math.ceil(count / ON_A_PAGE);
  if (pages < 2) return null;
  const step = (by, label) => {
    const button = make("button", { type: "button", disabled: view.page + by < 0 || view.page + by >= pages }, label);
    button.addEventListener("click", () => { view.page += by; redraw(); });
    return button;
  };
  return make("div", { class: "pager" }, step(-1, "Previous"), `Page ${view.page + 1} of ${pages}`, step(1, "Next"));
}

// The column headings are one Tab stop, the rows another.
function controlsOf(area) {
  const rows = (part) => [...area.querySelectorAll(`${part} tr`)].map((row) => [...row.querySelectorAll("button, input")]).filter((row) => row.length);
  return [rows("thead"), rows("tbody")];
}

function moveInTable(root, event) {
  const [head, body] = controlsOf(root), from = event.composedPath()[0];
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in BETWEEN)) return;
  const isAbove = event.key === "ArrowDown" && (head.flat().includes(from) || from.type === "search");
  if (isAbove) body.flat().find((control) => control.getAttribute("tabindex") === "0")?.focus();
  if (isAbove || goOn(head, from, event.key) || goOn(body, from, event.key)) event.preventDefault();
}

function draw(view) {
  const redraw = (told, keep) => {
    if (told) view.tell([...view.selected]);
    fill();
    if (keep) view.root.querySelector(`[data-id="${CSS.escape(keep)}"] .pick input`)?.focus();
  };
  const area = make("div"), count = make("span", { class: "count", "aria-live": "polite" });
  const filter = make("input", { type: "search", placeholder: `Filter ${view.data.noun}`, "aria-label": `Filter ${view.data.noun}` });
  filter.value = view.filter;
  filter.addEventListener("input", () => { view.filter = filter.value; view.page = 0; fill(); });
  function fill() {
    const rows = visible(view);
    view.page = Math.min(view.page, Math.max(0, Math.ceil(rows.length / ON_A_PAGE) - 1));
    const shown = rows.slice(view.page * ON_A_PAGE, (view.page + 1) * ON_A_PAGE);
    const all = view.data.rows.length, many = (number) => number.toLocaleString("en");
    count.textContent = rows.length === all ? `${many(all)} ${all === 1 ? view.data.noun.replace(/s$/, "") : view.data.noun}` : `${many(rows.length)} of ${many(all)} ${view.data.noun}`;
    const body = make("tbody", {}, shown.map((row) => line(view, row, redraw)));
    area.replaceChildren(
      make("div", { class: "holder" }, make("table", { "aria-label": view.data.label, class: view.data.stacks ? "stacks" : null }, headings(view, shown, redraw), body)),
      ...(rows.length ? [] : [make("p", { class: "nothing" }, view.data.rows.length ? "No matches." : view.data.empty)]),
      ...[pager(view, rows.length, redraw)].filter(Boolean));
    controlsOf(area).forEach(oneStop);
  }
  if (!view.listens) view.root.addEventListener("keydown", (event) => moveInTable(view.root, event));
  view.listens = true;
  view.root.replaceChildren(...(view.data.filters ? [make("div", { class: "tools" }, filter, count)] : []), area);
  fill();
}

function take(view, data, shadow) {
  const drawn = JSON.stringify(data);
  if (view.drawn === drawn) return;
  view.drawn = drawn;
  view.data = data;
  const there = new Set(data.rows.map((row) => row.id));
  view.selected = new Set((data.selected ?? [...view.selected]).filter((id) => there.has(id)));
  const at = view.root.contains(shadow.activeElement) ? shadow.activeElement : null, row = at?.closest("[data-id]")?.dataset.id;
  draw(view);
  if (at?.type === "search") view.root.querySelector("input[type=search]")?.focus();
  else if (row) view.root.querySelector(`[data-id="${CSS.escape(row)}"] ${at.matches(".open") ? ".open" : "input"}`)?.focus();
}

export default function (component) {
  const root = component.parentElement.querySelector(".root"), data = component.data;
  const view = (root.view ??= { root, filter: "", sort: null, down: false, page: 0, selected: new Set() });
  view.tell = (ids) => component.setStateValue("selected", ids);
  view.open = (id) => component.setTriggerValue("open", id);
  afterPress(root, () => take(view, data, component.parentElement));
}
