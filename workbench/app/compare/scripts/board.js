import { SHAPES, afterPress, goOn, make, ms, oneStop, renderedText, shape, spoken } from "../../widgets/scripts/shared.js";

// Judging: a mark is shown at once and sent until the page confirms it, so that none is lost or counted twice.
// judging.scale has the rows [name, grade], best first; their keys are 1, 2, ...
const buttonsOf = (judging) => [...judging.scale.map(([name, grade], place) => [String(place + 1), name, grade]), ["0", "clear", null]];
const gradeOfKey = (judging, key) => key === "Backspace" ? null : buttonsOf(judging).find(([own]) => own === key)?.[2];
const signOf = (judging, grade) => grade === null ? "×" : grade <= 0 ? "○" : grade < judging.scale[0][1] ? "◐" : "●";

function grades(judging) {
  return make("div", { class: "grades", role: "group", "aria-label": "Judgment" },
    buttonsOf(judging).map(([key, name, grade]) => make("button", { type: "button", class: "grade", "data-grade": String(grade), tabindex: "-1", title: `Key ${key}` },
      make("kbd", { "aria-hidden": "true" }, key), make("span", { class: "sign", "aria-hidden": "true" }, signOf(judging, grade)), make("span", { class: "word" }, name))), make("span", { class: "through", hidden: true }));
}

function judgingHint(judging) {
  return make("p", { class: "judging-hint" }, make("span", {}, "Judging for ", make("b", { title: judging.title }, judging.title), make("span", { class: "pointed" }, ", the passage under the pointer or focus"), ":"),
    buttonsOf(judging).map(([key, name]) => make("span", {}, make("kbd", {}, key), ` ${name}`)),
    make("span", {}, "nDCG uses each document's best passage"));
}

function gradesNow(root) {
  const now = new Map(Object.entries(root.data.judging.grades));
  for (const [, key, grade] of root.pending) {
    if (grade === null) now.delete(key);
    else now.set(key, grade);
  }
  return now;
}

// The best grade of other passages of the same text (usually of another index), as in the metrics.
function gradeThrough(root, now, key) {
  const found = (root.data.judging.same[key] ?? []).map((other) => now.get(other)).filter((grade) => grade !== undefined);
  return found.length && !now.has(key) ? Math.max(...found) : undefined;
}

// nDCG as in Evaluate (linear gains over documents; unjudged passages count as not relevant);
// null if nothing relevant has been judged.
function ndcg(column, now, depth) {
  const best = new Map();
  now.forEach((grade, key) => {
    const document = key.slice(0, key.lastIndexOf(":"));
    best.set(document, Math.max(best.get(document) ?? 0, grade));
  });
  const gained = (grades) => grades.slice(0, depth).reduce((sum, grade, place) => sum + Math.max(0, grade) / Math.log2(place + 2), 0);
  const ideal = gained([...best.values()].sort((a, b) => b - a));
  return ideal ? gained([...new Set(column.hits.map((hit) => hit.document))].map((document) => best.get(document) ?? 0)) / ideal : null;
}

function liveScore(root, column, now) {
  const depth = Math.min(10, Math.max(...root.data.columns.map((one) => one.hits.length))), value = ndcg(column, now, depth);
  return value === null ? null : make("span", { class: "live", title: "From the judgments so far; unjudged passages count as not relevant" },
    `nDCG@${depth} `, make("b", {}, value.toFixed(2).replace(/^0/, "")));
}

function tallyOf(root, column, now) {
  const seen = column.hits.map((hit) => now.get(hit.key) ?? gradeThrough(root, now, hit.key)).filter((grade) => grade !== undefined);
  const count = (grade) => seen.filter((one) => one === grade).length;
  return [make("span", {}, `${seen.length} of ${column.hits.length}`, make("span", { class: "word" }, " judged")), make("span", { class: "counts" }, root.data.judging.scale.map(([name, grade]) =>
    make("span", { title: name }, make("span", { "aria-hidden": "true" }, `${signOf(root.data.judging, grade)} `), spoken(name), String(count(grade))))), liveScore(root, column, now)];
}

function paintGrades(root) {
  if (!root.data.judging) return;
  const now = gradesNow(root);
  root.querySelectorAll(".card").forEach((item) => {
    const grade = now.get(item.dataset.key);
    item.dataset.judged = grade === undefined ? "" : String(grade);
    paintThrough(root, item, gradeThrough(root, now, item.dataset.key));
    item.querySelectorAll(".grade").forEach((button) => {
      const own = button.dataset.grade;
      if (own === "null") button.setAttribute("aria-disabled", String(grade === undefined));
      else button.setAttribute("aria-pressed", String(own === String(grade)));
    });
  });
  root.querySelectorAll(".tally").forEach((line, place) => {
    line.hidden = false;
    line.replaceChildren(...tallyOf(root, root.data.columns[place], now).filter(Boolean));
  });
}

function paintThrough(root, item, grade) {
  const line = item.querySelector(".through"), name = root.data.judging.scale.find(([, one]) => one === grade)?.[0];
  line.hidden = grade === undefined;
  line.replaceChildren(...(name ? [make("span", { "aria-hidden": "true" }, `${signOf(root.data.judging, grade)} `), `judged ${name} via an overlapping passage`] : []));
}

function mark(root, item, grade) {
  const key = item.dataset.key, before = gradesNow(root).get(key) ?? null;
  if (before === grade) return;
  root.sent = Math.max(root.sent, root.data.judging.kept) + 1;
  root.pending.push([root.sent, key, grade]);
  paintGrades(root);
  root.keep("marks", [...root.pending]);
}

function takeGrades(root, data) {
  if (root.data?.judging?.about !== data.judging?.about) root.pending = [];
  if (data.judging) root.pending = root.pending.filter(([number]) => number > data.judging.kept);
}

// The card that keys apply to: the last one under the pointer or focus.
function watchPointed(root) {
  let seen = "";
  const focused = () => root.getRootNode().activeElement?.closest?.(".card") ?? null;
  root.pointed = null;
  root.addEventListener("mousemove", (event) => {
    const at = `${event.screenX} ${event.screenY}`;  // scrolling under a resting pointer does not count
    if (at === seen) return;
    seen = at;
    root.pointed = event.target.closest(".card") ?? focused();
  });
  root.addEventListener("focusin", (event) => { root.pointed = event.target.closest(".card") ?? root.pointed; });
  root.addEventListener("mouseleave", () => { seen = ""; root.pointed = focused(); });
}

function listenForGrades(root) {
  watchPointed(root);
  const onKey = (event) => {
    if (!root.isConnected) return document.removeEventListener("keydown", onKey);
    if (!root.data.judging || gradeOfKey(root.data.judging, event.key) === undefined || event.ctrlKey || event.metaKey || event.altKey) return undefined;
    if (event.composedPath()[0].matches?.("input, textarea, select, [contenteditable=true]")) return undefined;
    if (!root.pointed?.isConnected) return undefined;
    event.preventDefault();
    if (!event.repeat) mark(root, root.pointed, gradeOfKey(root.data.judging, event.key));
    return undefined;
  };
  document.addEventListener("keydown", onKey);
}

// The badge of the live strategy, and the buttons that promote another one.
function paintServing(root) {
  const { serving, columns } = root.data;
  if (!serving) return;
  root.querySelectorAll(".serving").forEach((holder, place) => {
    const column = columns[place], serves = serving.columns.includes(column.name);
    const state = serves ? serving.badge : serving.reason;
    if (holder.dataset.state === state) return;
    holder.dataset.state = state;
    holder.replaceChildren(serves
      ? make("span", { class: "badge", title: "Used by searches in this scope that name no strategy" }, serving.badge)
      : make("button", { type: "button", class: "promote", disabled: Boolean(serving.reason), title: serving.reason || `Use ${column.title} for searches in this scope that name no strategy` },
        "Promote", spoken(` ${column.title}`)));
  });
  oneStop([promotions(root)]);
}

function promotions(root) {
  return [...root.querySelectorAll(".promote:not(:disabled)")];
}

// Arrow keys move between the Promote buttons, and down to the passages.
function moveFromPromotion(root, event) {
  const from = event.target.closest(".promote");
  if (!from) return;
  const column = root.querySelectorAll(".cards > .column")[[...root.querySelectorAll(".head")].indexOf(from.closest(".head"))];
  const below = event.key === "ArrowDown" ? column?.querySelector(".card .title") : null;
  if (below) focusOn(root, below);
  if (below || goOn([promotions(root)], from, event.key)) event.preventDefault();
}

// The up arrow moves from the first passage of a column to its Promote button.
function goToPromotion(root, item, key) {
  const place = [...root.querySelectorAll(".cards > .column")].indexOf(item.closest(".column"));
  if (key === "ArrowUp") root.querySelectorAll(".head")[place]?.querySelector(".promote:not(:disabled)")?.focus();
}

function head(column, slowest) {
  const total = column.total || 1;
  const bar = make("div", { class: "stages", "aria-hidden": "true", style: `width:${Math.max(8, (100 * column.total) / (slowest || 1))}%` });
  column.stages.forEach((stage, place) => {
    bar.append(make("i", { class: `s${Math.min(place, 6)}`, style: `width:${(100 * stage.ms) / total}%`, title: `${stage.name} ${ms(stage.ms)}` }));
  });
  return make("header", { class: `head hue-${column.hue}`, title: column.summary },
    make("div", { class: "name" }, shape(column), make("h2", {}, column.strategy, column.letter ? [" ", make("span", { class: "index" }, `${column.letter} `, column.index)] : null), make("span", { class: "serving", "data-column": column.name })),
    make("div", { class: "speed" }, make("div", {}, bar), make("span", { class: "time mono" }, ms(column.total))),
    make("p", { class: "tally", hidden: true }), notesOf(column.notes));
}

// Notes are one line, cut at the width, until they are unfolded.
const notesOf = (notes) => (notes.length === 0 ? null : make("details", { class: "note" },
  make("summary", {}, notes.map(([note]) => note).join(" · ")), notes.flatMap(([, ...details]) => details).map((line) => make("div", {}, line))));

const letterOf = (column) => (column.letter ? make("span", { class: "letter", "aria-hidden": "true" }, column.letter) : null);

function moved(other) {
  if (other.rank === null) {
    return make("span", { class: "move gone" }, shape(other), letterOf(other), make("span", { "aria-hidden": "true" }, "–"),
      spoken(`not found by ${other.title}`));
  }
  const sign = other.moved > 0 ? `▲${other.moved}` : other.moved < 0 ? `▼${-other.moved}` : "=";
  const how = other.moved > 0 ? `, ${other.moved} higher` : other.moved < 0 ? `, ${-other.moved} lower` : ", the same";
  const sentence = `${other.title} ranks it ${other.rank}${how}`;
  return make("span", { class: "move", title: sentence }, shape(other), letterOf(other), make("span", { "aria-hidden": "true" }, sign), spoken(sentence));
}

// Words of the question are highlighted; similar words are underlined, thicker for higher similarity.
function markedPiece([matched, segments]) {
  const words = segments.map(([text, like]) => (like ? make("u", { class: `like${like}` }, text) : text));
  if (matched) return make("mark", {}, words);
  return words.length === 1 ? words[0] : make("span", {}, words);
}

function copiesOf(hit) {
  if (hit.copies.length === 0) return null;
  return make("details", { class: "copies" }, make("summary", {}, `+${hit.copies.length}`, make("span", { class: "word" }, hit.copies.length === 1 ? " copy" : " copies"), spoken(` of ${hit.title}`)),
    make("ul", {}, hit.copies.map(([title, path]) => make("li", { title, dir: "auto" }, path || title))));
}

// A title or place that is too long is cut before its last words, in which near-equal ones differ.
const halves = (text) => text.match(/^(.{12,}?|.*)(\s.{0,13})?$/s).slice(1).map((part) => part ?? "");

function card(hit, column, first, judging) {
  const onlyHere = hit.others.length > 0 && hit.others.every((other) => other.rank === null);
  const title = make("button", { class: "title", type: "button", tabindex: first ? "0" : "-1", title: hit.path, dir: "auto" }, halves(hit.title).map((part) => make("span", {}, part)),
    spoken(`, rank ${hit.rank} in ${column.title}, score ${hit.score}`));
  const item = make("li", { class: `card hue-${column.hue}`, "data-id": hit.id, "data-key": hit.key },
    make("div", { class: "top" }, make("span", { class: "rank mono", "aria-hidden": "true" }, hit.rank), title,
      make("span", { class: "score mono", "aria-hidden": "true" }, hit.score)),
    make("div", { class: "bar", "aria-hidden": "true" }, make("i", { style: `width:${100 * hit.share}%` })),
    make("div", { class: "place", title: hit.place, dir: "auto" }, halves(hit.place || "\u00a0").map((part) => make("span", {}, part))),
    renderedText("text", hit.text, markedPiece),
    make("div", { class: "foot" },
      onlyHere ? make("span", { class: "only", title: `Only ${column.title} found it` }, "new", spoken(`: only ${column.title} found it`)) : hit.others.map(moved), copiesOf(hit),
      make("button", { class: "why", type: "button", tabindex: "-1", }, "Why", spoken(` ${hit.title} is here`))),
    judging ? grades(judging) : null);
  return Object.assign(item, { hit, cut: column.cut, column: column.name });
}

function columnOf(column, judging) {
  if (column.hits.length === 0) {
    return make("div", { class: "column" }, make("p", { class: "none" }, "Nothing found. ", make("button", { type: "button", class: "act", "data-expected": column.name }, "Find an expected document", spoken(` in ${column.title}`))));
  }
  return make("ol", { class: "column", "aria-label": `${column.title}: ${column.hits.length} passages` },
    column.hits.map((hit, place) => card(hit, column, place === 0, judging)));
}

// A failed column shows the error and a remedy: scopes to choose from, or a button that removes it.
const SCOPE_WORDS = { project: "Projects", source: "Sources" };

function failureHead(failure) {
  return make("header", { class: `head hue-${failure.hue}` },
    make("div", { class: "name" }, shape(failure), make("h2", {}, failure.title), make("span", { class: "time quiet" }, "failed")));
}

function failureColumn(failure) {
  const groups = Object.entries(failure.scopes).filter(([, places]) => places.length > 0);
  return make("div", { class: "column failure", role: "group", "aria-label": `${failure.title} failed` },
    make("p", { class: "detail" }, failure.text),
    groups.length ? scopePicker(failure, groups) : null,
    make("button", { type: "button", class: "remedy", "data-reset": failure.strategy }, `Remove ${failure.title}`));
}

function scopePicker(failure, groups) {
  const picker = make("select", { class: "scopes", "aria-label": `Search in, for ${failure.title}` }, make("option", { value: "" }, "Search in…"),
    groups.map(([kind, places]) => make("optgroup", { label: SCOPE_WORDS[kind] },
      places.map((place) => make("option", { value: JSON.stringify({ kind, id: place.id }) }, place.title)))));
  return make("label", { class: "pickscope" }, "Choose a project or source:", picker);
}

function listenForRemedies(root) {
  root.addEventListener("change", (event) => {
    if (event.target.matches?.("select.scopes") && event.target.value) root.send("scope", JSON.parse(event.target.value));
  });
  root.addEventListener("click", (event) => {
    const remedy = event.target.closest(".remedy");
    if (remedy) root.send("reset", remedy.dataset.reset);
  });
}

// The rank strip: a row per rank, a column per strategy, a line per passage found by several of them. It folds.
const ROW = 14, LEAST_ROW = 4, STRIP = 146, PAD = 8, LETTER = 6.4, LEAST_LABEL = 9;  // px; letters of the shortest useful label

function trails(columns) {
  const found = new Map();
  columns.forEach((column, place) => column.hits.forEach((hit) => {
    if (!found.has(hit.id)) found.set(hit.id, { id: hit.id, label: hit.label, title: hit.title, place: hit.place, at: [] });
    const { at } = found.get(hit.id);
    if (at.at(-1)?.place !== place) at.push({ place, rank: hit.rank });  // the best of several pieces of one text
  }));
  return [...found.values()];
}

function curve(a, b) {
  const bend = (b.x - a.x) * 0.42;
  return `M${a.x} ${a.y} C${a.x + bend} ${a.y} ${b.x - bend} ${b.y} ${b.x} ${b.y}`;
}

// The first and the last column have labels, on their outer side.
function label(trail, at, spot, last, room) {
  const outside = at.place === 0 ? -1 : at.place === last ? 1 : 0, letters = Math.floor(room / LETTER);
  if (outside === 0 || letters < LEAST_LABEL) return null;
  const [start, end] = letters > 20 && !trail.label.endsWith("…") ? halves(trail.label) : [trail.label, ""];
  const text = start.length + end.length > letters ? `${start.slice(0, letters - 1 - end.length)}…${end}` : trail.label;
  return make("svg:text", { class: "label", x: spot.x + outside * 12, y: spot.y + 4, "text-anchor": outside < 0 ? "end" : "start" }, text);
}

function drawStrip(holder, columns, width, followed, onFollow, onChoose) {
  const rows = Math.max(1, ...columns.map((column) => column.hits.length)), row = Math.max(LEAST_ROW, Math.min(ROW, STRIP / rows));
  const height = rows * row + 2 * PAD, step = (width + 20) / columns.length, last = columns.length - 1, isLegible = row >= ROW;
  const across = (place) => (place === 0 ? step * 0.78 : place === last ? place * step + step * 0.1 : place * step + (step - 20) / 2);
  const spot = ({ place, rank }) => ({ x: Math.round(across(place)), y: PAD + (rank - 0.5) * row });
  const svg = make("svg:svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": "Ranks of each passage across the strategies" });
  const shades = make("svg:defs");
  columns.slice(1).forEach((column, place) => {
    const [from, to] = [spot({ place, rank: 1 }).x, spot({ place: place + 1, rank: 1 }).x];
    shades.append(make("svg:linearGradient", { id: `shade${place}`, gradientUnits: "userSpaceOnUse", x1: from, x2: to, y1: 0, y2: 0 },
      make("svg:stop", { offset: 0.15, class: `hue-${columns[place].hue}`, style: "stop-color:var(--hue)" }),
      make("svg:stop", { offset: 0.85, class: `hue-${column.hue}`, style: "stop-color:var(--hue)" })));
  });
  svg.append(shades);
  for (let rank = 1; isLegible && rank <= rows; rank += 1) {
    svg.append(make("svg:text", { class: "axis", x: 16, y: PAD + (rank - 0.5) * row + 4 }, rank));
  }
  for (const trail of trails(columns)) {
    const group = make("svg:g", { class: "trail", "data-id": trail.id });
    trail.at.slice(1).forEach((to, place) => {
      const from = trail.at[place], near = to.place - from.place === 1, d = curve(spot(from), spot(to));
      group.append(make("svg:path", { class: "line", d, stroke: near ? `url(#shade${from.place})` : "var(--quiet)", "stroke-dasharray": near ? null : "2 5" }));
      group.append(make("svg:path", { class: "hit-area", d }));
    });
    for (const at of trail.at) {
      const column = columns[at.place], { x, y } = spot(at);
      const dot = make("svg:g", { class: `dot hue-${column.hue}`, transform: `translate(${x - 5} ${y - 5})` },
        make("svg:rect", { x: -6, y: -2, width: 22, height: row, fill: "transparent" }), SHAPES[column.shape]());
      dot.addEventListener("click", () => onChoose(at.place, trail.id));
      group.append(dot, ...[isLegible && label(trail, at, { x, y }, last, at.place === 0 ? x - 34 : width - x - 14)].filter(Boolean));
    }
    group.addEventListener("mouseenter", () => onFollow(trail.id, true));
    group.addEventListener("mouseleave", () => onFollow(null));
    svg.append(group);
  }
  holder.replaceChildren(svg);
  onFollow(...followed);
}

function captionOf(columns, id) {
  const trail = id && trails(columns).find((one) => one.id === id);
  if (!trail) return ["Each line tracks one passage across the rankings."];
  const where = columns.map((column, place) => {
    const at = trail.at.find((one) => one.place === place);
    return make("span", { class: "move" }, shape(column), `${column.title} ${at ? at.rank : "–"}`);
  });
  return [make("b", {}, trail.place ? `${trail.title} › ${trail.place}` : trail.title), ...where];
}

// Until someone folds or unfolds it, the strip is folded while judging and on small screens, so that two cards fit.
function rankStrip(root, columns, places) {
  const holder = make("div", { class: "bump-holder" }), caption = make("span", { class: "caption" }, captionOf(columns, null));
  const summary = make("summary", {}, make("b", {}, "Ranks"), caption);
  const strip = make("details", { class: "bump", open: root.unfolded ?? (!root.data.judging && innerWidth >= 1100), style: `--share:${columns.length / places}` }, summary, holder);
  summary.addEventListener("click", () => { root.unfolded = !strip.open; });
  root.follow = (id, dims = false) => {
    root.followed = [id, dims];
    root.querySelectorAll(".card, .trail").forEach((one) => one.classList.toggle("lit", id !== null && one.dataset.id === id));
    strip.classList.toggle("following", dims);
    caption.replaceChildren(...captionOf(columns, id));
  };
  const choose = (place, id) => focusOnHit(root, { place, id });
  let drawn = 0;
  const watcher = new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width);
    if (width === drawn || width === 0) return;
    drawn = width;
    drawStrip(holder, columns, width, root.followed ?? [null], root.follow, choose);
  });
  watcher.observe(holder);
  root.stopWatching = () => watcher.disconnect();
  return strip;
}

const ROWS_OF_KEYS = { ArrowDown: 1, ArrowUp: -1 }, COLUMNS_OF_KEYS = { ArrowRight: 1, ArrowLeft: -1 };

const HINT = [["/", "question"], ["↑↓←→", "between passages"], ["Enter", "open"], ["W", "why"], ["Esc", "close the inspector"], ["?", "all keys"]];

function draw(root, data) {
  const { columns, failures, judging } = data, places = columns.length + failures.length;
  const grid = (name, parts) => make("div", { class: `grid ${name}` }, parts);
  root.follow = (id) => root.querySelectorAll(".card").forEach((one) => one.classList.toggle("lit", id !== null && one.dataset.id === id));
  root.replaceChildren(make("div", { class: "board" }, make("div", { class: "above" }, judging ? judgingHint(judging) : null, notesOf(data.notes)),
    make("div", { class: "sheet", style: `--columns:${places};--wide:${places > 1 ? 208 : 260}px` },
      grid("heads", [...columns.map((column) => head(column, data.slowest)), ...failures.map(failureHead)]),
      columns.length > 1 ? rankStrip(root, columns, places) : null,
      grid("cards", [...columns.map((column) => columnOf(column, judging)), ...failures.map(failureColumn)])),
    make("p", { class: "hint" }, HINT.map(([key, what]) => make("span", {}, make("kbd", {}, key), ` ${what}`)), make("mark", {}, "exact word"),
      make("u", { class: "like2" }, "similar word (late interaction)"), make("span", {}, "Times include the question's embedding, which all but keyword columns share."))));
}

function focusOn(root, target) {
  const column = target.closest(".column");
  column.querySelectorAll(".title").forEach((one) => one.setAttribute("tabindex", one === target ? "0" : "-1"));
  target.focus({ preventScroll: true });
  target.closest(".card").scrollIntoView({ block: "nearest", inline: "nearest" });
}

function neighbour(root, from, key) {
  const columns = [...root.querySelectorAll("ol.column")];
  const column = from.closest("ol.column"), cards = [...column.children], at = cards.indexOf(from);
  if (key in ROWS_OF_KEYS) return cards[at + ROWS_OF_KEYS[key]];
  const next = columns[columns.indexOf(column) + COLUMNS_OF_KEYS[key]];
  if (!next) return undefined;
  return next.querySelector(`[data-id="${CSS.escape(from.dataset.id)}"]`) ?? next.children[Math.min(at, next.children.length - 1)];
}

// The card that had the focus last, by its column and text; it gets the focus again after a redraw or the inspector.
function focusOnHit(root, { place, id }) {
  const column = root.querySelectorAll(".cards > .column")[place];
  const title = column?.querySelector(`[data-id="${CSS.escape(id)}"] .title`) ?? root.querySelector(".card .title");
  if (title) focusOn(root, title);
}

function rememberFocus(root) {
  root.addEventListener("focusin", (event) => {
    const item = event.target.closest(".card");
    if (item) root.last = { id: item.dataset.id, place: [...root.querySelectorAll(".cards > .column")].indexOf(item.closest(".column")) };
  });
  const back = (event) => {
    if (!root.isConnected) document.removeEventListener("click", back);
    else if (event.target.closest?.(".st-key-inspector_close")) focusOnHit(root, root.last ?? { place: 0, id: "" });
  };
  document.addEventListener("click", back);
}

function listen(root) {
  const why = (item) => root.send("why", { passage: item.hit.passage, column: item.column });
  const open = (item) => root.send("open", { document: item.hit.document, start: item.hit.start, end: item.hit.end, cut: item.cut });
  root.addEventListener("click", (event) => {
    const promoted = event.target.closest(".promote");
    if (promoted) root.send("promote", promoted.closest(".serving").dataset.column);
    const missing = event.target.closest("[data-expected]");
    if (missing) root.send("why", { passage: "expected", column: missing.dataset.expected });
    const item = event.target.closest(".card");
    if (!item) return;
    const grade = event.target.closest(".grade");
    if (event.target.closest(".why")) why(item);
    else if (grade) mark(root, item, JSON.parse(grade.dataset.grade));
    else if (event.target.closest(".grades, .copies")) return;
    else open(item);
  });
  root.addEventListener("keydown", (event) => {
    const item = event.target.closest(".card");
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = event.key in ROWS_OF_KEYS || event.key in COLUMNS_OF_KEYS;
    if (moves) {
      const to = neighbour(root, item, event.key);
      if (to) focusOn(root, to.querySelector(".title"));
      else goToPromotion(root, item, event.key);
    } else if (event.key === "w" || event.key === "W") why(item);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  followPointer(root);
}

// The passage under the pointer or focus is highlighted in all columns.
function followPointer(root) {
  const arrive = (event) => {
    const item = event.target.closest?.(".card");
    if (item && (event.type === "mouseover" || event.target.matches(":focus-visible"))) root.follow(item.dataset.id, event.type === "mouseover");  // the keyboard's focus lights a passage without dimming the others
    else if (event.type === "mouseover" && !event.target.closest?.(".bump")) root.follow(null);
  };
  const leave = (event) => {
    if (!event.relatedTarget?.closest?.(".card")) root.follow(null);
  };
  for (const name of ["mouseover", "focusin"]) root.addEventListener(name, arrive);
  for (const name of ["mouseleave", "focusout"]) root.addEventListener(name, leave);
}

// Judging and promotion repaint parts of the board; only other hits, or another order, redraw it.
function lasting(data) {
  const { judging } = data;
  return JSON.stringify([{ ...data, judging: null, serving: null }, judging && [judging.about, judging.title]]);
}

// After Enter in the question, the first passage gets the focus, unless the user has typed since. The same when judging
// starts, so that the keys work at once.
function takeFocus(root, judgingStarts) {
  const first = root.querySelector(".card .title");
  if (!first || !(window.workbenchEntered || (judgingStarts && !document.activeElement?.matches("input, textarea, select")))) return;
  first.focus({ preventScroll: true, ...(!judgingStarts && window.workbenchEntered) });
  window.workbenchEntered = false;
}

function show(root, data) {
  window.workbenchBoard = root;  // target of the arrow key from the question
  const first = root.drawn === undefined, drawn = lasting(data), hadFocus = root.contains(root.getRootNode().activeElement);
  if (first) Object.assign(root, { pending: [], sent: 0 });
  takeGrades(root, data);
  const judgingStarts = data.judging && root.data?.judging?.about !== data.judging.about;
  root.data = data;
  if (first) {
    listen(root);
    listenForGrades(root);
    listenForRemedies(root);
    rememberFocus(root);
    root.addEventListener("keydown", (event) => moveFromPromotion(root, event));
  }
  if (root.drawn !== drawn) {
    root.stopWatching?.();
    root.drawn = drawn;
    draw(root, data);
    takeFocus(root, judgingStarts);
  }
  paintGrades(root);
  paintServing(root);
  if (hadFocus && !root.getRootNode().activeElement) focusOnHit(root, root.last ?? { place: 0, id: "" });
}

export default function (component) {
  const root = component.parentElement.querySelector(".root"), data = component.data;
  root.send = component.setTriggerValue;
  root.keep = component.setStateValue;
  afterPress(root, () => show(root, data));
}
