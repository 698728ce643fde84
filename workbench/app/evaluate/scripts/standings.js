import { afterPress, counted, make, shape, spoken } from "../../widgets/scripts/shared.js";

const share = (value, [low, high]) => `${((value - low) / (high - low || 1)) * 100}%`;

// The value as a dot on a scale all rows share, with its 95% interval as a line through it.
function whisker(row, scale) {
  const box = make("div", { class: `whisker hue-${row.hue}`, role: "img", "aria-label": `95% interval ${row.low} to ${row.high}` });
  const line = make("i", { class: "line" }), dot = make("i", { class: "dot" });
  line.style.left = share(row.low, scale);
  line.style.width = `calc(${share(row.high, scale)} - ${share(row.low, scale)})`;
  dot.style.left = share(row.value, scale);
  box.append(line, dot);
  return box;
}

function axis([low, high]) {
  return make("div", { class: "axis", role: "img", "aria-label": "95% interval" }, make("span", {}, low.toFixed(2)), make("span", {}, high.toFixed(2)));
}

function verdict(row) {
  if (!row.against) return make("span", { class: "quiet" }, row.leads);
  return make("span", {}, make("b", { class: row.against.kind }, row.against.sign), ` ${row.against.text}`);
}

function act(row, view) {
  if (row.status !== "done") return make("span", { class: "quiet" }, row.error ?? row.status);
  if (row.serves || !row.promotable) return null;
  const button = make("button", { type: "button", class: "act", "aria-label": `Promote ${row.label}` }, "Promote");
  button.addEventListener("click", () => view.send("promote", row.id));
  return button;
}

function pick(row, view) {
  if (row.status !== "done") return null;
  const place = view.data.picks.indexOf(row.id);
  const button = make("button", { type: "button", class: place < 0 ? "pick" : "pick on", "aria-pressed": String(place >= 0),
    "aria-label": `Compare ${row.label} question by question` }, place < 0 ? "" : "AB"[place]);
  button.addEventListener("click", () => view.send("pick", row.id));
  return button;
}

function standing(row, view) {
  const number = (value, digits) => make("td", { class: "number" }, value === null ? "–" : counted(value, digits));
  return make("tr", { "data-id": row.id },
    make("td", { class: "number rank" }, row.rank ? String(row.rank) : ""),
    make("td", { class: "run" }, shape(row), " ", make("b", {}, row.title), " ", row.serves ? make("span", { class: `badge hue-${row.hue}`, title: "Used by searches in this scope that name no strategy" }, row.badge) : null, row.settings ? make("div", { class: "small" }, row.settings) : null),
    number(row.value, 3),
    make("td", { class: "interval" }, row.value === null ? null : whisker(row, view.data.scale)),
    make("td", { class: "against" }, verdict(row)),
    make("td", { class: "number" }, row.p50 === null ? "–" : counted(row.p50, 1), row.front && row.p50 !== null ? make("span", { class: "front", title: "No other run is both better and faster" }, " ★") : null),
    number(row.p95, 1),
    make("td", { class: "number" }, row.size),
    row.costs.map((cost) => make("td", { class: "number cost" }, cost)),
    view.data.unjudged ? make("td", { class: "number unjudged", "data-label": view.data.unjudged }, row.unjudged, make("div", {}, row.bounds)) : null,
    make("td", { class: "pickcell" }, pick(row, view)),
    make("td", {}, act(row, view)));
}

function show(root, component) {
  const data = component.data;
  const drawn = JSON.stringify(data);
  if (root.drawn === drawn) return;
  root.drawn = drawn;
  const focused = root.contains(component.parentElement.activeElement) ? component.parentElement.activeElement.getAttribute("aria-label") : null;
  const view = { data, send: (name, id) => component.setTriggerValue(name, id) };
  const heads = [["#", "number"], ["Run"], [data.metric, "number"], [axis(data.scale), "interval"], ["vs. best", "against"], ["p50 ms", "number"],
    ["p95 ms", "number"], ["On disk", "number"], ...data.costs.map(([title, about]) => [make("span", { title: about }, title), "number"]), ...(data.unjudged ? [[data.unjudged, "number"]] : []), ["A/B", "pickcell"], [""]];
  root.replaceChildren(make("div", { class: "holder" }, make("table", { "aria-label": "Leaderboard" },
    make("thead", {}, make("tr", {}, heads.map(([text, kind]) => make("th", { scope: "col", class: kind }, text || spoken("Actions"))))),
    make("tbody", {}, data.rows.map((row) => standing(row, view))))));
  if (focused) root.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}

export default function (component) {
  const root = component.parentElement.querySelector(".root");
  afterPress(root, () => show(root, component));
}
