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
  trend: (value) => (value === null || value.values.length < 2 ? [] : [polyline(value)]),
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

const WIDE = 96, HIGH = 24, ROOM = 4;

// Values over time as a line; the dot marks the row's own.
function polyline(value) {
  const least = Math.min(...value.values), most = Math.max(...value.values);
  const x = (place) => ROOM + (place * (WIDE - 2 * ROOM)) / (value.values.length - 1);
  const y = (at) => (most === least ? HIGH / 2 : HIGH - ROOM - ((at - least) * (HIGH - 2 * ROOM)) / (most - least));
  const points = value.values.map((at, place) => `${x(place).toFixed(1)},${y(at).toFixed(1)}`).join(" ");
  return make("svg:svg", { class: "line", viewBox: `0 0 ${WIDE} ${HIGH}`, width: WIDE, height: HIGH, role: "img", "aria-label": value.text },
    make("svg:polyline", { points }), make("svg:circle", { cx: x(value.at), cy: y(value.values[value.at]), r: 3 }));
}

function orderOf(value, kind) {
  if (kind === "tags") return value.join(" ").toLowerCase();
  if (kind === "shown") return value.order;
  if (kind === "state" || kind === "strategy") return value?.text ?? null;
  if (kind === "score") return value === null ? null : value.value;
  if (kind === "trend") return value === null ? null : value.values[value.at];
  return typeof value === "string" ? value.toLowerCase() : value;
}

function wordsOf(value, kind) {
  if (value === null || value === undefined) return "";
  if (kind === "tags") return value.join(" ");
  if (kind === "score" || kind === "trend") return "";
  return String(["shown", "state", "strategy"].includes(kind) ? value.text : value);
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined || a === "") return 1;
  if (b === null || b === undefined || b === "") return -1;
  return typeof a === "string" ? a.localeCompare(b) : a - b;
}

function isNumeric(column) {
  return column.kind === "number" || column.kind === "score" || (column.kind === "shown" && column.align === "right");
}

function cell(column, row, place, onOpen) {
  const value = row.cells[column.name];
  const shown = CELLS[column.kind](value);
  const inside = place === 0 && onOpen ? [make("button", { class: "open", type: "button", dir: "auto" }, shown)] : shown;
  if (inside !== shown) inside[0].addEventListener("click", () => onOpen(row.id));
  const note = row.notes?.[column.name];
  return make("td", { class: `${isNumeric(column) ? "number" : column.kind}${column.narrow ? " narrow" : ""}`, "data-label": column.label }, inside, note ? make("div", { class: "small" }, note) : null);
}
