import { BETWEEN, afterPress, goOn, make, oneStop, shape } from "./shared.js";

const SIGNS = { done: "✓", same: "=", failed: "✕", busy: "…", waiting: "·" };

// How a cell of each kind is shown.
const CELLS = {
  text: (value) => (typeof value === "string" ? breakable(value) : [value]),
  number: (value) => [value === null ? "–" : Number(value).toLocaleString("en")],
  shown: (value) => [value.text],
  tags: (value) => value.map((tag) => make("span", { class: "tag" }, tag)),
  state: (value) => [make("span", { class: `state ${value.state}` }, make("i", { "aria-hidden": "true" }, SIGNS[value.state] ?? "·"), value.text)],
  strategy: (value) => (value === null ? ["–"] : [make("span", { class: "strategy" }, value.shape ? shape(value) : null, value.text)]),
  score: (value) => (value === null ? ["–"] : [make("span", { class: "mean" }, value.value.toFixed(3)), interval(value)]),
  action: (value) => [value],
};

// A name such as search_knowledge_base breaks after "_" or "/", not within a word.
function breakable(text) {
  return text.split(/(?<=[_/])(?=.)/u).flatMap((part, place) => (place ? [make("wbr"), part] : [part]));
}

// The interval of a mean on the scale that all rows share.
function interval(value) {
  const [first, last] = value.ends, place = (at) => `${(100 * (at - first)) / (last - first || 1)}%`;
  const bar = make("i", {}), dot = make("b", {});
  bar.style.left = place(value.low); bar.style.right = `calc(100% - ${place(value.high)})`;
  dot.style.left = place(value.value);
  return make("span", { class: "scale", role: "img", "aria-label": `95% interval ${value.low.toFixed(3)} to ${value.high.toFixed(3)}`, title: `95% interval ${value.low.toFixed(3)} to ${value.high.toFixed(3)}` }, bar, dot);
}

function orderOf(value, kind) {
  if (kind === "tags") return value.join(" ").toLowerCase();
  if (kind === "shown") return value.order;
  if (kind === "state" || kind === "strategy") return value?.text ?? null;
  if (kind === "score") return value === null ? null : value.value;
  return typeof value === "string" ? value.toLowerCase() : value;
}

function wordsOf(value, kind) {
  if (value === null || value === undefined) return "";
  if (kind === "tags") return value.join(" ");
  if (kind === "score" || kind === "action") return "";
  return String(["shown", "state", "strategy"].includes(kind) ? value.text : value);
}

// A missing value is last in both directions.
function compare(a, b, down) {
  if (a === b) return 0;
  if (a === null || a === undefined || a === "") return 1;
  if (b === null || b === undefined || b === "") return -1;
  return (down ? -1 : 1) * (typeof a === "string" ? a.localeCompare(b) : a - b);
}

function isNumeric(column) {
  return column.kind === "number" || column.kind === "score" || (column.kind === "shown" && column.align === "right");
}

function cell(column, row, place, onOpen) {
  const value = row.cells[column.name];
  const shown = CELLS[column.kind](value);
  const acts = column.kind === "action" && value !== null, label = acts ? `${value} ${row.name}` : null;
  const inside = acts || (place === 0 && onOpen) ? [make("button", { class: acts ? "act" : "open", type: "button", dir: "auto", "aria-label": label }, shown)] : shown;
  if (inside !== shown) inside[0].addEventListener("click", () => onOpen(acts ? `${column.name}: ${row.id}` : row.id));
  const note = row.notes?.[column.name];
  return make("td", { class: `${isNumeric(column) ? "number" : column.kind}${column.narrow ? " narrow" : ""}`, "data-label": column.label }, inside, note ? make("div", { class: "small" }, note) : null);
}

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
  return [...kept].sort((a, b) => compare(orderOf(a.cells[sort], column.kind), orderOf(b.cells[sort], column.kind), down));
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
  return make("tr", { "data-id": row.id, "aria-current": row.current ? "true" : null, class: view.selected.has(row.id) ? "chosen" : null }, cells);
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
  const redraw = (notify, keep) => {
    if (notify) view.send([...view.selected]);
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
  view.send = (ids) => component.setStateValue("selected", ids);
  view.open = (id) => component.setTriggerValue("open", id);
  afterPress(root, () => take(view, data, component.parentElement));
}
