// Elements are created and texts set; HTML is never parsed, so a passage is always shown as text.
const SVG = "http://www.w3.org/2000/svg";

export function make(tag, attributes = {}, ...children) {
  const node = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

export const SHAPES = {
  circle: () => make("svg:circle", { cx: 5, cy: 5, r: 4.6, fill: "currentColor" }),
  ring: () => make("svg:circle", { cx: 5, cy: 5, r: 3.6, fill: "none", stroke: "currentColor", "stroke-width": 2 }),
  square: () => make("svg:rect", { x: 0.8, y: 0.8, width: 8.4, height: 8.4, fill: "currentColor" }),
  triangle: () => make("svg:path", { d: "M5 0.4 L9.8 9.2 L0.2 9.2 Z", fill: "currentColor" }),
  diamond: () => make("svg:path", { d: "M5 0 L10 5 L5 10 L0 5 Z", fill: "currentColor" }),
  cross: () => make("svg:path", { d: "M1.5 1.5 L8.5 8.5 M8.5 1.5 L1.5 8.5", stroke: "currentColor", "stroke-width": 2.4 }),
};

export function shape(column) {
  return make("svg:svg", { viewBox: "0 0 10 10", class: `shape hue-${column.hue}`, "aria-hidden": "true" }, SHAPES[column.shape]());
}

export function spoken(text) {
  return make("span", { class: "hidden-label" }, text);
}

export function counted(value, digits = 0) {
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function ms(value) {
  return `${counted(value, value >= 100 ? 0 : 1)} ms`;
}

// A click is lost if its element is replaced between pointer down and up, so a redraw waits until the press has ended.
// Of several waiting redraws, the last is drawn.
const PRESS_ENDS = ["pointerup", "pointercancel", "pointermove", "dragend", "blur"];

export function afterPress(root, redraw) {
  if (!root.press) watchPress(root, (root.press = { held: false, waiting: null }));
  root.press.waiting = redraw;
  drawWaiting(root.press);
}

function drawWaiting(press) {
  if (press.held || !press.waiting) return;
  const redraw = press.waiting;
  press.waiting = null;
  redraw();
}

function watchPress(root, press) {
  root.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest("select")) return;  // the list of a select consumes the release
    const listening = new AbortController();
    press.held = true;
    const end = (ending) => {
      if (ending.type === "pointermove" && ending.buttons) return;  // a missed release is detected by the next move
      if (ending.type === "blur" && ending.target !== window) return;  // the press moved the focus out of a field
      listening.abort();
      setTimeout(() => {  // the click follows the release in the same task
        press.held = false;
        drawWaiting(press);
      });
    };
    for (const name of PRESS_ENDS) window.addEventListener(name, end, { capture: true, signal: listening.signal });
  }, true);
}

// A rendered text: only these tags are created, without attributes that load, link or style anything.
const TAGS = new Set("p ul ol li blockquote pre code table thead tbody tr th td em strong s br hr span".split(" "));
const FORMULA_TAGS = new Set(("math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd "
  + "mstyle mpadded mphantom menclose mmultiscripts mprescripts none").split(" "));
const SHORT = 16;  // characters of a cell that stays on one line, such as a date
const FORMULA_ATTRIBUTES = ["display", "stretchy", "fence", "form", "largeop", "movablelimits", "linethickness", "columnalign", "width"];
const KINDS = new Set(["link", "picture", "formula", "formula block", "heading", "item", "row", "row heading", "rows", "cell", "record", "name", "code"]);

// The direction of the text is that of its first letter; each block has its own.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

export function renderedText(name, nodes, pieceOf) {
  const text = make("div", { class: `${name} rendered` }, rendered(nodes, pieceOf));
  text.dir = RIGHT_TO_LEFT.test(text.textContent.match(/\p{L}/u)?.[0] ?? "") ? "rtl" : "ltr";
  return text;
}

function rendered(nodes, pieceOf, isInside = false) {
  return (nodes ?? []).map((node) => {
    if (typeof node === "string") return node;
    return Array.isArray(node) || "text" in node ? pieceOf(node) : elementOf(node, pieceOf, isInside);
  });
}

function elementOf(node, pieceOf, isInside) {
  if (FORMULA_TAGS.has(node.tag)) return formulaOf(node, pieceOf);
  const children = rendered(node.in, pieceOf, true);
  const dir = node.dir === "ltr" ? "ltr" : isInside ? null : "auto";
  if (node.level) {  // below the drawer's own title
    return make(`h${Math.min(6, Number(node.level) + 2)}`, { class: `level${Number(node.level)}`, "data-heading": node.number, tabindex: -1, dir }, children);
  }
  if (node.tag === "table") return make("div", { class: "wide", tabindex: 0, role: "group", "aria-label": "Table", dir }, make("table", {}, children));
  if (node.tag === "pre") return make("pre", { dir: "ltr", tabindex: 0, role: "group", "aria-label": "Code" }, children);
  const start = node.tag === "ol" ? node.start : null;
  const made = make(TAGS.has(node.tag) ? node.tag : "span", { class: classesOf(node), title: node.title, dir, start }, children);
  if (node.tag === "td" && made.textContent.length <= SHORT) made.classList.add("short");
  return made;
}

function classesOf(node) {
  return [KINDS.has(node.class) && node.class, node.mark && `stretch ${node.mark}`, node.align && `to-${node.align}`].filter(Boolean).join(" ") || null;
}

function formulaOf(node, pieceOf) {
  const made = document.createElementNS("http://www.w3.org/1998/Math/MathML", node.tag);
  for (const name of FORMULA_ATTRIBUTES) if (node[name] !== undefined) made.setAttribute(name, node[name]);
  made.append(...rendered(node.in, pieceOf, true));
  return made;
}

// Roving tabindex: a group of controls is one Tab stop, and arrow keys move within it.
export const BETWEEN = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

// Make the last visited control of a group, or the first, its Tab stop.
export function oneStop(rows) {
  const every = rows.flat(), at = every.find((control) => control.getAttribute("tabindex") === "0") ?? every[0];
  every.forEach((control) => control.setAttribute("tabindex", control === at ? "0" : "-1"));
}

// Move from a control by an arrow key; return the new control, or undefined at the edge of the group.
export function goOn(rows, from, key) {
  const row = rows.findIndex((controls) => controls.includes(from));
  if (row < 0 || !(key in BETWEEN)) return undefined;
  const [down, right] = BETWEEN[key], place = rows[row].indexOf(from);
  const to = down ? rows[row + down]?.[Math.min(place, rows[row + down].length - 1)] : rows[row][place + right];
  if (!to) return undefined;
  from.setAttribute("tabindex", "-1");
  to.setAttribute("tabindex", "0");
  to.focus();
  return to;
}
