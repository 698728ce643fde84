import { SHAPES, afterPress, goOn, make, ms, oneStop, renderedText, shape, spoken } from "../../widgets/scripts/shared.js";

// Judging: a mark is shown at once and sent until the page confirms it, so that none is lost or counted twice.
const GRADES = [["1", "relevant", 2], ["2", "partly", 1], ["3", "not relevant", 0], ["0", "clear", null]];
const GRADES_OF_KEYS = { ...Object.fromEntries(GRADES.map(([key, , grade]) => [key, grade])), Backspace: null };
const SIGNS = { 2: "●", 1: "◐", 0: "○" };

function grades() {
  return make("div", { class: "grades", role: "group", "aria-label": "Judgment" },
    GRADES.map(([key, name, grade]) => make("button", { type: "button", class: "grade", "data-grade": String(grade), tabindex: "-1", title: `Key ${key}` },
      make("kbd", { "aria-hidden": "true" }, key), name)), make("span", { class: "through", hidden: true }));
}

function judgingHint(judging) {
  return make("p", { class: "judging-hint" }, make("span", {}, "Judging for ", make("b", { title: judging.title }, judging.title), ", the passage under the pointer or focus:"),
    GRADES.map(([key, name]) => make("span", {}, make("kbd", {}, key), ` ${name}`)),
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
  return [`${seen.length} of ${column.hits.length} judged`, ...GRADES.slice(0, 3).map(([, name, grade]) =>
    make("span", { title: name }, make("span", { "aria-hidden": "true" }, `${SIGNS[grade]} `), spoken(name), String(count(grade)))), liveScore(root, column, now)];
}

function paintGrades(root) {
  if (!root.data.judging) return;
  const now = gradesNow(root);
  root.querySelectorAll(".card").forEach((item) => {
    const grade = now.get(item.dataset.key);
    item.dataset.judged = grade === undefined ? "" : String(grade);
    paintThrough(item, gradeThrough(root, now, item.dataset.key));
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

function paintThrough(item, grade) {
  const line = item.querySelector(".through"), name = GRADES.find(([, , one]) => one === grade)?.[1];
  line.hidden = grade === undefined;
  line.replaceChildren(...(name ? [make("span", { "aria-hidden": "true" }, `${SIGNS[grade]} `), `judged ${name} via an overlapping passage`] : []));
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
  root.addEventListener("mouseleave", () => { root.pointed = focused(); });
}

function listenForGrades(root) {
  watchPointed(root);
  const onKey = (event) => {
    if (!root.isConnected) return document.removeEventListener("keydown", onKey);
    if (!root.data.judging || !(event.key in GRADES_OF_KEYS) || event.ctrlKey || event.metaKey || event.altKey) return undefined;
    if (event.composedPath()[0].matches?.("input, textarea, select, [contenteditable=true]")) return undefined;
    if (!root.pointed?.isConnected) return undefined;
    event.preventDefault();
    if (!event.repeat) mark(root, root.pointed, GRADES_OF_KEYS[event.key]);
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
  const column = root.querySelectorAll(".grid > .column")[[...root.querySelectorAll(".head")].indexOf(from.closest(".head"))];
  const below = event.key === "ArrowDown" ? column?.querySelector(".card .title") : null;
  if (below) focusOn(root, below);
  if (below || goOn([promotions(root)], from, event.key)) event.preventDefault();
}

// The up arrow moves from the first passage of a column to its Promote button.
function goToPromotion(root, item, key) {
  const place = [...root.querySelectorAll(".grid > .column")].indexOf(item.closest(".column"));
  if (key === "ArrowUp") root.querySelectorAll(".head")[place]?.querySelector(".promote:not(:disabled)")?.focus();
}

function head(column, slowest) {
  const total = column.total || 1;
  const bar = make("div", { class: "stages", "aria-hidden": "true", style: `width:${Math.max(8, (100 * column.total) / (slowest || 1))}%` });
  column.stages.forEach((stage, place) => {
    bar.append(make("i", { class: `s${Math.min(place, 6)}`, style: `width:${(100 * stage.ms) / total}%`, title: `${stage.name} ${ms(stage.ms)}` }));
  });
  return make("header", { class: `head hue-${column.hue}`, title: column.summary },
    make("div", { class: "name" }, shape(column), make("h2", {}, column.strategy, column.letter ? [" ", make("span", { class: "index" }, `${column.letter} `, column.index)] : null), make("span", { class: "serving", "data-column": column.name }), make("span", { class: "time mono" }, ms(column.total))),
    bar,
    make("p", { class: "tally", hidden: true }),
    ...column.notes.map((note) => make("p", { class: "note" }, note)));
}

function letterOf(column) {
  return column.letter ? make("span", { class: "letter", "aria-hidden": "true" }, column.letter) : null;
}

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
  const count = hit.copies.length === 1 ? "1 copy" : `${hit.copies.length} copies`;
  return make("details", { class: "copies" }, make("summary", {}, count, spoken(` of ${hit.title}`)),
    make("ul", {}, hit.copies.map(([title, path]) => make("li", { title: path, dir: "auto" }, title))));
}

function card(hit, column, first, judging) {
  const onlyHere = hit.others.length > 0 && hit.others.every((other) => other.rank === null);
  const title = make("button", { class: "title", type: "button", tabindex: first ? "0" : "-1", title: hit.path, dir: "auto" }, hit.title,
    spoken(`, rank ${hit.rank} in ${column.title}, score ${hit.score}`));
  const item = make("li", { class: `card hue-${column.hue}`, "data-id": hit.id, "data-key": hit.key },
    make("div", { class: "top" }, make("span", { class: "rank mono", "aria-hidden": "true" }, hit.rank), title,
      make("span", { class: "score mono", "aria-hidden": "true" }, hit.score)),
    make("div", { class: "bar", "aria-hidden": "true" }, make("i", { style: `width:${100 * hit.share}%` })),
    make("div", { class: "place", title: hit.place, dir: "auto" }, hit.place || "\u00a0"),
    renderedText("text", hit.text, markedPiece),
    copiesOf(hit),
    make("div", { class: "foot" },
      onlyHere ? make("span", { class: "only", title: `Only ${column.title} found it` }, "new", spoken(`: only ${column.title} found it`)) : hit.others.map(moved),
      make("button", { class: "why", type: "button", tabindex: "-1", "aria-haspopup": "dialog" }, "Why", spoken(` ${hit.title} is here`))),
    judging ? grades() : null);
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
    make("div", { class: "name" }, shape(failure), make("h2", {}, failure.title), make("span", { class: "time quiet" }, "failed")),
    make("div", { class: "stages", "aria-hidden": "true" }));
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

// The bump chart: a row per rank, a column per strategy, a line per passage found by several of them.
const ROW = 17, PAD = 12, LETTER = 6.4, LEAST_LABEL = 9;  // px of a letter; letters of the shortest useful label

function trails(columns) {
  const found = new Map();
  columns.forEach((column, place) => column.hits.forEach((hit) => {
    if (!found.has(hit.id)) found.set(hit.id, { id: hit.id, title: hit.title, place: hit.place, at: [] });
    const { at } = found.get(hit.id);
    if (at.at(-1)?.place !== place) at.push({ place, rank: hit.rank });  // the best of several pieces of one text
  }));
  return [...found.values()];
}

function curve(a, b) {
  const bend = (b.x - a.x) * 0.42;
  return `M${a.x} ${a.y} C${a.x + bend} ${a.y} ${b.x - bend} ${b.y} ${b.x} ${b.y}`;
}

function label(trail, at, spot, last, room) {
  const outside = at.place === 0 ? -1 : at.place === last ? 1 : 0;
  const letters = Math.floor(room / LETTER);
  if (outside === 0 || letters < LEAST_LABEL) return null;
  const text = trail.title.length > letters ? `${trail.title.slice(0, letters - 1)}…` : trail.title;
  return make("svg:text", { class: "label", x: spot.x + outside * 14, y: spot.y + 4, "text-anchor": outside < 0 ? "end" : "start" }, text);
}

function drawBump(holder, columns, width, onFollow, onChoose) {
  const rows = Math.max(1, ...columns.map((column) => column.hits.length));
  const height = rows * ROW + 2 * PAD;
  const step = (width + 20) / columns.length;
  const spot = ({ place, rank }) => ({ x: Math.round(place * step + (step - 20) / 2), y: PAD + (rank - 0.5) * ROW });
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
  for (let rank = 1; rank <= rows; rank += 1) {
    const y = PAD + (rank - 0.5) * ROW;
    svg.append(make("svg:text", { class: "axis", x: 16, y: y + 4 }, rank));
  }
  for (const trail of trails(columns)) {
    const group = make("svg:g", { class: "trail", "data-id": trail.id });
    trail.at.slice(1).forEach((to, place) => {
      const from = trail.at[place];
      const near = to.place - from.place === 1;
      const d = curve(spot(from), spot(to));
      group.append(make("svg:path", { class: "line", d, stroke: near ? `url(#shade${from.place})` : "var(--quiet)", "stroke-dasharray": near ? null : "2 5" }));
      group.append(make("svg:path", { class: "hit-area", d }));
    });
    for (const at of trail.at) {
      const column = columns[at.place], { x, y } = spot(at);
      const dot = make("svg:g", { class: `dot hue-${column.hue}`, transform: `translate(${x - 5} ${y - 5})` },
        make("svg:rect", { x: -6, y: -3, width: 22, height: 16, fill: "transparent" }), SHAPES[column.shape]());
      dot.addEventListener("click", () => onChoose(at.place, trail.id));
      group.append(dot, ...[label(trail, at, { x, y }, columns.length - 1, step / 2 - 46)].filter(Boolean));
    }
    group.addEventListener("mouseenter", () => onFollow(trail.id));
    group.addEventListener("mouseleave", () => onFollow(null));
    svg.append(group);
  }
  holder.replaceChildren(svg);
}

function captionOf(columns, id) {
  const hint = ["Each line tracks one passage across the rankings."];
  if (!id) return hint;
  const trail = trails(columns).find((one) => one.id === id);
  if (!trail) return hint;
  const where = columns.map((column, place) => {
    const at = trail.at.find((one) => one.place === place);
    return make("span", { class: "move" }, shape(column), `${column.title} ${at ? at.rank : "–"}`);
  });
  return [make("b", {}, trail.place ? `${trail.title} › ${trail.place}` : trail.title), ...where];
}

function pairOf(pairs, a, b) {
  return pairs[`${a}|${b}`] ?? pairs[`${b}|${a}`];
}

function matrix(columns, pairs, title, sub) {
  const rows = columns.map((row) => make("tr", {},
    make("th", { scope: "row" }, shape(row), ` ${row.title}`),
    columns.map((column) => {
      if (row === column) return make("td", { class: "self" }, "·");
      const value = pairOf(pairs, row.name, column.name);
      return make("td", { style: `--share:${value}` }, value.toFixed(2));
    })));
  return make("section", {}, make("h3", {}, title), make("p", { class: "sub" }, sub),
    make("table", { class: "matrix", "aria-label": title },
      make("thead", {}, make("tr", {}, make("td", { class: "self" }), columns.map((column) => make("th", { scope: "col" }, shape(column), letterOf(column), spoken(column.title))))),
      make("tbody", {}, rows)));
}

function times(columns, order) {
  const names = [...new Set(columns.flatMap((column) => column.stages.map((stage) => stage.name)))];
  names.sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const rows = columns.map((column) => make("tr", {},
    make("th", { scope: "row" }, shape(column), ` ${column.title}`),
    names.map((name) => {
      const stage = column.stages.find((one) => one.name === name);
      return make("td", {}, stage ? stage.ms.toFixed(1) : "–");
    }),
    make("td", { class: "total" }, column.total.toFixed(1))));
  return make("section", { class: "wide", tabindex: 0 }, make("h3", {}, "Time per stage"), make("p", { class: "sub" }, "In milliseconds. The question is embedded once for all columns."),
    make("table", { class: "times", "aria-label": "Time per stage" },
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, spoken("Strategy")), [...names, "total"].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, rows)));
}

function figures(data) {
  const parts = [times(data.columns, data.stages)];
  if (data.columns.length > 1) {
    const what = data.by_document ? "documents" : "passages";
    parts.unshift(
      matrix(data.columns, data.agreement.jaccard, `Same ${what}`, "Jaccard similarity, 0 to 1."),
      matrix(data.columns, data.agreement.rbo, "Same order", data.by_document ? "Rank-biased overlap of documents, because the indexes have different passages." : "Rank-biased overlap: top ranks count most."));
  }
  return make("div", { class: "figures" }, parts);
}

const ROWS_OF_KEYS = { ArrowDown: 1, ArrowUp: -1 }, COLUMNS_OF_KEYS = { ArrowRight: 1, ArrowLeft: -1 };

function draw(root, data) {
  const columns = data.columns;
  const holder = make("div", { class: "bump-holder" });
  const caption = make("div", { class: "caption" }, captionOf(columns, null));
  const bump = make("div", { class: "bump", style: `grid-area: 2 / 1 / auto / span ${columns.length}` }, holder, caption);
  const places = columns.length + data.failures.length;
  const grid = make("div", { class: "grid", style: `--columns:${places};--least:${places > 1 ? 218 : 260}px` },
    columns.map((column) => head(column, data.slowest)), data.failures.map(failureHead), columns.length > 1 ? bump : null,
    columns.map((column, place) => inPlace(columnOf(column, data.judging !== null), place, columns.length > 1 ? "3" : "2")),
    data.failures.map((failure, place) => inPlace(failureColumn(failure), columns.length + place, "2 / span 2")));
  const board = make("div", { class: "board" }, data.judging ? judgingHint(data.judging) : null, make("div", { class: "scroller", tabindex: "-1" }, grid),
    make("p", { class: "hint" }, make("kbd", {}, "/"), " question  ", make("kbd", {}, "↑"), make("kbd", {}, "↓"), make("kbd", {}, "←"), make("kbd", {}, "→"),
      " between passages  ", make("kbd", {}, "Enter"), " open  ", make("kbd", {}, "W"), " why  ", make("kbd", {}, "?"), " all keys  ", make("mark", {}, "exact word"), "  ",
      make("u", { class: "like2" }, "similar word"), " (late interaction)"),
    columns.length ? figures(data) : null);
  root.replaceChildren(board);
  const follow = (id) => {
    root.querySelectorAll(".card, .trail").forEach((one) => one.classList.toggle("lit", id !== null && one.dataset.id === id));
    bump.classList.toggle("following", id !== null);
    caption.replaceChildren(...captionOf(columns, id));
  };
  const choose = (place, id) => {
    const target = grid.querySelectorAll(".column")[place]?.querySelector(`[data-id="${CSS.escape(id)}"] .title`);
    if (target) focusOn(root, target);
  };
  root.follow = follow;
  let drawn = 0;
  const watcher = new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width);
    if (width === drawn || width === 0) return;
    drawn = width;
    drawBump(holder, columns, width, follow, choose);
  });
  watcher.observe(holder);
  root.stopWatching = () => watcher.disconnect();
}

function inPlace(node, place, row) {
  node.style.gridColumn = String(place + 1);
  node.style.gridRow = row;
  return node;
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

// After a panel is closed, the focus returns to the card that opened it.
function focusAfterDialog(root, id, place) {
  let seen = false;
  const watcher = new MutationObserver(() => {
    const isOpen = document.querySelector("[role=dialog]") !== null;
    seen ||= isOpen;
    if (isOpen || !seen) return;
    watcher.disconnect();
    const title = root.querySelectorAll(".grid > .column")[place]?.querySelector(`[data-id="${CSS.escape(id)}"] .title`);
    if (title) requestAnimationFrame(() => focusOn(root, title));
  });
  watcher.observe(document.body, { childList: true, subtree: true });
}

function listen(root) {
  const leave = (item) => focusAfterDialog(root, item.dataset.id, [...root.querySelectorAll(".grid > .column")].indexOf(item.closest(".column")));
  const why = (item) => {
    leave(item);
    root.send("why", { passage: item.hit.passage, column: item.column });
  };
  const open = (item) => {
    leave(item);
    root.send("open", { document: item.hit.document, start: item.hit.start, end: item.hit.end, cut: item.cut });
  };
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
    if (item) root.follow(item.dataset.id);
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

// After Enter in the question, the first passage gets the focus, unless the user has typed since.
function takeFocusAfterEnter(root) {
  const first = root.querySelector(".card .title");
  if (!window.workbenchEntered || !first) return;
  window.workbenchEntered = false;
  first.focus({ preventScroll: true });
}

function show(root, data) {
  window.workbenchBoard = root;  // target of the arrow key from the question
  const first = root.drawn === undefined, drawn = lasting(data);
  if (first) Object.assign(root, { pending: [], sent: 0 });
  takeGrades(root, data);
  root.data = data;
  if (first) {
    listen(root);
    listenForGrades(root);
    listenForRemedies(root);
    root.addEventListener("keydown", (event) => moveFromPromotion(root, event));
  }
  if (root.drawn !== drawn) {
    root.stopWatching?.();
    root.drawn = drawn;
    draw(root, data);
    takeFocusAfterEnter(root);
  }
  paintGrades(root);
  paintServing(root);
}

export default function (component) {
  const root = component.parentElement.querySelector(".root"), data = component.data;
  root.send = component.setTriggerValue;
  root.keep = component.setStateValue;
  afterPress(root, () => show(root, data));
}
