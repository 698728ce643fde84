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
