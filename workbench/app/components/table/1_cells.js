const SIGNS = { done: "✓", same: "=", failed: "✕", busy: "…", waiting: "·" };

// How a cell of each kind is shown; a cell is a value, or {value, note} with a smaller second line.
const CELLS = {
  text: (value) => [value],
  number: (value) => [value === null ? "–" : Number(value).toLocaleString("en")],
  shown: (value) => [value.text],
  tags: (value) => value.map((tag) => make("span", { class: "tag" }, tag)),
  state: (value) => [make("span", { class: `state ${value.state}` }, make("i", { "aria-hidden": "true" }, SIGNS[value.state] ?? "·"), value.text)],
};

function orderOf(value, kind) {
  if (kind === "tags") return value.join(" ").toLowerCase();
  if (kind === "shown") return value.order;
  if (kind === "state") return value.text;
  return typeof value === "string" ? value.toLowerCase() : value;
}

function wordsOf(value, kind) {
  if (value === null || value === undefined) return "";
  if (kind === "tags") return value.join(" ");
  return String(kind === "shown" || kind === "state" ? value.text : value);
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined || a === "") return 1;
  if (b === null || b === undefined || b === "") return -1;
  return typeof a === "string" ? a.localeCompare(b) : a - b;
}

function isNumeric(column) {
  return column.kind === "number" || (column.kind === "shown" && column.align === "right");
}

function cell(column, row, place, onOpen) {
  const value = row.cells[column.name];
  const shown = CELLS[column.kind](value);
  const inside = place === 0 && onOpen ? [make("button", { class: "open", type: "button" }, shown)] : shown;
  if (inside !== shown) inside[0].addEventListener("click", () => onOpen(row.id));
  const note = row.notes?.[column.name];
  return make("td", { class: isNumeric(column) ? "number" : column.kind }, inside, note ? make("div", { class: "small" }, note) : null);
}
