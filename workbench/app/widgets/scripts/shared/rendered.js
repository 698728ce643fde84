// A rendered text: only these tags are created, without attributes that load, link or style anything.
const TAGS = new Set("p ul ol li blockquote pre code table thead tbody tr th td em strong s br hr span".split(" "));
const FORMULA_TAGS = new Set(("math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd "
  + "mstyle mpadded mphantom menclose mmultiscripts mprescripts none").split(" "));
const SHORT = 16;  // characters of a cell that stays on one line, such as a date
const FORMULA_ATTRIBUTES = ["display", "stretchy", "fence", "form", "largeop", "movablelimits", "linethickness", "columnalign", "width"];
const KINDS = new Set(["link", "picture", "formula", "formula block", "heading", "item", "row", "row heading", "rows", "cell", "record", "name", "code"]);

// The direction of the text is that of its first letter; each block has its own.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

function renderedText(name, nodes, pieceOf) {
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
