import { afterPress, make, shape } from "../../widgets/scripts/shared.js";

const GRADE = { 0: ["not relevant", "✕"], 1: ["partly", "◐"], 2: ["relevant", "✓"], 3: ["relevant", "✓"] };

function badge(hit, whole) {
  if (hit.grade === null) return make("span", { class: "quiet" }, "not judged");
  const [word, sign] = whole && hit.grade > 0 ? ["relevant", "✓"] : GRADE[hit.grade] ?? GRADE[2], kind = word.split(" ")[0];
  return make("span", { class: `grade ${kind}` }, make("i", { "aria-hidden": "true" }, sign), ` ${word}`);
}

function hitCard(hit, view) {
  const title = make("button", { type: "button", class: "open" }, hit.title);
  if (hit.id) title.addEventListener("click", () => view.open(hit));
  else title.disabled = true;
  return make("li", { class: hit.grade > 0 ? "good" : null },
    make("span", { class: "mono quiet rank" }, String(hit.rank)),
    make("div", {}, make("div", { class: "head" }, title, badge(hit, view.whole), make("span", { class: "quiet" }, hit.moved)),
      hit.text ? make("p", {}, hit.text) : null));
}

function show(root, component) {
  const data = component.data;
  const drawn = JSON.stringify(data);
  if (root.drawn === drawn) return;
  root.drawn = drawn;
  const view = { whole: data.binary, open: (hit) => component.setTriggerValue("open", { document: hit.id, start: hit.start, end: hit.end }) };
  root.replaceChildren(make("div", { class: "columns" }, data.columns.map((column) => make("section", { "aria-label": column.label, class: `hue-${column.hue}` },
    make("h3", {}, shape(column), ` ${column.label}`, make("span", { class: "mono quiet" }, column.value)),
    column.hits.length ? make("ol", {}, column.hits.map((hit) => hitCard(hit, view))) : make("p", { class: "quiet" }, "No results."),
    column.missed.length ? make("p", { class: "missed" }, make("b", {}, "Relevant but not shown: "), column.missed.join(", ")) : null))));
}

export default function (component) {
  const root = component.parentElement.querySelector(".root");
  afterPress(root, () => show(root, component));
}
