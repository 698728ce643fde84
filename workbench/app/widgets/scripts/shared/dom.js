// Elements are created and texts set; HTML is never parsed, so a passage is always shown as text.
const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes = {}, ...children) {
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

const SHAPES = {
  circle: () => make("svg:circle", { cx: 5, cy: 5, r: 4.6, fill: "currentColor" }),
  ring: () => make("svg:circle", { cx: 5, cy: 5, r: 3.6, fill: "none", stroke: "currentColor", "stroke-width": 2 }),
  square: () => make("svg:rect", { x: 0.8, y: 0.8, width: 8.4, height: 8.4, fill: "currentColor" }),
  triangle: () => make("svg:path", { d: "M5 0.4 L9.8 9.2 L0.2 9.2 Z", fill: "currentColor" }),
  diamond: () => make("svg:path", { d: "M5 0 L10 5 L5 10 L0 5 Z", fill: "currentColor" }),
  cross: () => make("svg:path", { d: "M1.5 1.5 L8.5 8.5 M8.5 1.5 L1.5 8.5", stroke: "currentColor", "stroke-width": 2.4 }),
};

function shape(column) {
  return make("svg:svg", { viewBox: "0 0 10 10", class: `shape hue-${column.hue}`, "aria-hidden": "true" }, SHAPES[column.shape]());
}

function spoken(text) {
  return make("span", { class: "hidden-label" }, text);
}

function counted(value, digits = 0) {
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function ms(value) {
  return `${counted(value, value >= 100 ? 0 : 1)} ms`;
}
