import { afterPress, counted, make, renderedText, shape, spoken } from "../../widgets/scripts/shared.js";

// The parts of a score: a bar per hit, stacked by leg, with the hits above and below for comparison.
function stackOf(bar) {
  const parts = bar.parts.map((part) => `${part.title} ${part.adds.toFixed(3)}`).join(", ");
  return make("span", { class: "stack", role: "img", "aria-label": `${bar.score} of 1: ${parts || "no contributions"}` },
    bar.parts.map((part) => make("i", { class: `hue-${part.hue}`, style: `width:${100 * part.adds}%`, title: `${part.title} +${part.adds.toFixed(3)}`, "data-adds": part.adds })));
}

function barRow(bar) {
  const cells = [make("span", { class: "rank mono" }, bar.rank), make("span", { class: "who", dir: "auto" }, bar.title), stackOf(bar), make("span", { class: "mono total" }, bar.score)];
  if (bar.own) return make("li", { class: "barrow own", "aria-current": "true" }, cells);
  return make("li", {}, make("button", { type: "button", class: "barrow", "data-turn": bar.passage, title: "Explain this one" }, cells));
}

function legRow(leg, strategy) {
  const place = leg.rank === null ? "" : `rank ${leg.rank} ${leg.of}`;
  const less = leg.part ? (leg.vote < 1 ? `weight ${Math.round(100 * leg.vote)}% for this question` : "") : `not used by ${strategy.title}`;
  return make("li", { class: `leg hue-${leg.hue}${leg.part ? "" : " apart"}` },
    make("span", { class: "swatch", "aria-hidden": "true" }), make("span", { class: "name" }, leg.title),
    make("span", { class: "mono" }, leg.score), make("span", { class: "quiet unit" }, leg.unit),
    make("span", { class: "quiet at" }, [place, less].filter(Boolean).join(" · ")),
    make("span", { class: "mono adds" }, leg.adds === null ? "–" : `+${leg.adds.toFixed(3)}`));
}

function scoreSub(data) {
  if (!data.bars.length) return "Not retrieved, so there is no score to break down. These are its scores over the whole scope.";
  const [most] = [...data.legs].filter((leg) => leg.adds).sort((a, b) => b.adds - a.adds);
  if (!most) return "No leg contributes to it.";
  const others = data.bars.length > 1 ? " Neighbouring hits are shown for comparison." : "";
  const share = Math.round((100 * most.adds) / Number(data.score));
  return share >= 100 ? `“${most.title}” contributes all of it.${others}` : `“${most.title}” contributes most: ${share}% of ${data.score}.${others}`;
}

function scoreSection(data) {
  return make("section", { class: "part" }, make("h3", {}, "Score breakdown"), make("p", { class: "sub" }, scoreSub(data)),
    data.bars.length ? make("ol", { class: "bars" }, data.bars.map(barRow)) : null,
    make("ul", { class: "legs" }, data.legs.map((leg) => legRow(leg, data.strategy))));
}

// Token matches: hovering a word of the question highlights its matches in the passage.
function pieceOf([text, matched, like, likes]) {
  const words = Object.keys(likes);
  if (!matched && !like && !words.length) return text;
  const node = make(matched ? "mark" : "span", { class: `piece like${like}` }, text);
  return Object.assign(node, { likes });
}

function wordOf(data, [text, place]) {
  if (place === null) return text;
  return make("button", { type: "button", class: "word", "data-word": place, "aria-pressed": "false", "aria-describedby": "why-likes" }, text);
}

function likesOf(data, place) {
  const likes = data.likes[place] ?? [];
  const [word] = data.question.find((piece) => piece[1] === place);
  if (!likes.length) return [make("b", { dir: "auto" }, word), " matches nothing in the passage."];
  return [make("b", { dir: "auto" }, word), " matches ", likes.flatMap(([like, similarity], at) => [at ? " · " : "", make("span", { dir: "auto" }, like), " ", make("span", { class: "mono" }, similarity)])].flat();
}

function light(root, place) {
  const { section, data } = root.words;
  section.classList.toggle("lit", place !== null);
  section.querySelectorAll(".word").forEach((one) => one.classList.toggle("on", Number(one.dataset.word) === place));
  section.querySelectorAll(".piece").forEach((piece) => {
    const strength = place === null ? undefined : piece.likes[place];
    piece.classList.toggle("on", strength !== undefined);
    piece.style.setProperty("--strength", strength ?? 0);
  });
  section.querySelector(".likes").replaceChildren(...(place === null ? [restingHint(data)] : likesOf(data, place)));
}

function restingHint(data) {
  return data.likes.length ? "Hover a query word to see what it matched." : "This index has no token vectors, so only exact words are marked.";
}

// Scroll the best match into view, within the passage's frame.
function toStrongest(section, place) {
  const pieces = [...section.querySelectorAll(".piece.on")].sort((a, b) => b.likes[place] - a.likes[place]);
  const frame = section.querySelector(".passage");
  if (pieces[0] && frame.contains(pieces[0])) frame.scrollTop = pieces[0].offsetTop - frame.clientHeight / 2;
}

function listenForWords(root, section) {
  let pinned = null;
  const wordAt = (event) => event.target.closest?.(".word") ?? null;
  const show = (event) => { const word = wordAt(event); if (word) light(root, Number(word.dataset.word)); };
  const rest = () => light(root, pinned);
  section.addEventListener("mouseover", (event) => (wordAt(event) ? show(event) : rest()));
  section.addEventListener("mouseleave", rest);
  section.addEventListener("focusin", (event) => { if (wordAt(event)) { show(event); toStrongest(section, Number(wordAt(event).dataset.word)); } });
  section.addEventListener("focusout", rest);
  section.addEventListener("click", (event) => {
    const word = wordAt(event);
    if (!word) return;
    const place = Number(word.dataset.word);
    pinned = pinned === place ? null : place;
    section.querySelectorAll(".word").forEach((one) => one.setAttribute("aria-pressed", String(Number(one.dataset.word) === pinned)));
    light(root, place);
    toStrongest(section, place);
  });
}

// The passage, rendered or raw; the choice is kept from passage to passage.
function readOf(root, data) {
  if (data.blocks && !root.raw) return renderedText("read", data.blocks, pieceOf);
  return make("div", { class: "read", dir: "auto" }, data.text.map(pieceOf));
}

function formButton(root, data) {
  if (!data.blocks) return null;
  const words = () => (root.raw ? "Rendered" : "Raw text");
  const button = make("button", { type: "button", class: "act form" }, words());
  button.addEventListener("click", () => {
    root.raw = !root.raw;
    button.textContent = words();
    root.words.section.querySelector(".passage > :last-child").replaceWith(readOf(root, data));
  });
  return button;
}

function wordsSection(root, data) {
  const section = make("section", { class: "part words" }, make("h3", {}, "Token matches"),
    make("p", { class: "asked", dir: "auto" }, data.question.map((piece) => wordOf(data, piece))),
    make("p", { class: "likes", id: "why-likes", role: "status" }),
    make("div", { class: "passage", tabindex: "0", role: "region", "aria-label": "Passage" },
      data.context.length ? make("p", { class: "context", dir: "auto" }, data.context.map(pieceOf)) : null,
      readOf(root, data)),
    make("p", { class: "key quiet" }, make("mark", {}, "exact word"), " ", data.likes.length ? make("span", { class: "like2" }, "similar word") : null, formButton(root, data)));
  root.words = { section, data };
  section.querySelector(".likes").append(restingHint(data));
  listenForWords(root, section);
  return section;
}

// The features of a learned ranker: value, weight, and share of the score as a bar.
function featureRow(feature) {
  const percent = Math.round(100 * feature.share);
  return make("li", { class: "feature", title: `${feature.why}; weight ${feature.weight}` }, make("span", { class: "name" }, feature.title),
    make("span", { class: "quiet mono" }, feature.value), make("span", { class: "quiet mono" }, feature.weight),
    make("span", { class: "track hue-yellow", "aria-hidden": "true" }, make("i", { style: `width:${percent}%` })), make("span", { class: "mono total" }, `${percent}%`));
}

function featuresSection(data) {
  if (!data.features.length) return null;
  return make("section", { class: "part" }, make("h3", {}, "Ranker features"),
    make("p", { class: "sub" }, "Value, weight and share of the score. With a negative weight, a low value contributes most."),
    make("ol", { class: "features" }, data.features.map(featureRow)));
}

// Each matched word with its share of BM25, and below them the missing words.
function termRow(term) {
  const percent = Math.round(100 * term.share);
  return make("li", { class: "term", title: `BM25 ${term.score}` }, make("span", { class: "name", dir: "auto" }, term.word),
    make("span", { class: "quiet times" }, `× ${term.times}`), make("span", { class: "track hue-orange", "aria-hidden": "true" }, make("i", { style: `width:${percent}%` })),
    make("span", { class: "mono total" }, `${percent}%`));
}

function termsSection(data) {
  const lacks = data.missing.length ? make("p", { class: "lacks" }, make("span", { class: "quiet" }, "Missing: "), data.missing.map((word) => make("span", { class: "missing", dir: "auto" }, word))) : null;
  return make("section", { class: "part" }, make("h3", {}, "Keyword matches"), make("p", { class: "sub" }, data.terms.length ? "Share of the BM25 score." : "None of the query words occur in it."),
    data.terms.length ? make("ol", { class: "terms" }, data.terms.map(termRow)) : null, lacks);
}

// Its rank by every other strategy: rank 1 at the left, beyond the top 200 at the right.
const LINE_ROW = 26, LAST = 200, BEYOND = 96, LINE_SPAN = 86, LINE_PAD = 4;

function across(rank) {
  return rank === null ? BEYOND : LINE_PAD + (LINE_SPAN * Math.log(Math.min(rank, LAST))) / Math.log(LAST);
}

function lineThrough(rows) {
  const at = rows.map((row, place) => [across(row.rank), (place + 0.5) * LINE_ROW]);
  const svg = make("svg:svg", { class: "line", viewBox: `0 0 100 ${rows.length * LINE_ROW}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  at.slice(1).forEach(([x, y], place) => {
    const [fromX, fromY] = at[place], bend = LINE_ROW * 0.45;
    const gone = rows[place].rank === null || rows[place + 1].rank === null;
    svg.append(make("svg:path", { d: `M${fromX} ${fromY} C${fromX} ${fromY + bend} ${x} ${y - bend} ${x} ${y}`, class: gone ? "gone" : null, "vector-effect": "non-scaling-stroke" }));
  });
  return svg;
}

function rankRow(row) {
  const place = row.rank === null ? `not in the top ${LAST}` : `rank ${row.rank}`;
  return make("li", { class: row.own ? "rankrow own" : "rankrow", "aria-label": `${row.title}: ${place}` }, make("span", { class: "name", "aria-hidden": "true" }, row.title),
    make("span", { class: "lane", "aria-hidden": "true" }, make("span", { class: "spot", style: `left:${across(row.rank)}%` }, shape(row))),
    make("span", { class: "mono total", "aria-hidden": "true" }, row.rank ?? "–"));
}

function elsewhereSection(data) {
  const asked = data.elsewhere.length > 1;
  return make("section", { class: "part" }, make("h3", {}, "Rank by other strategies"), make("p", { class: "sub" }, asked ? `Rank 1 is at the left; – means not in the top ${LAST}.` : "No other strategy is available."),
    make("div", { class: "ranks" }, make("ol", {}, data.elsewhere.map(rankRow)), lineThrough(data.elsewhere)));
}

// Find an expected document by title or name, and show its funnel.
const WAIT = 140;  // ms after the last letter

function optionOf(found, place) {
  return make("li", { role: "option", id: `expected${place}`, "aria-selected": "false", "data-place": place },
    make("span", { class: "name", dir: "auto" }, found.title), make("span", { class: "quiet where", dir: "auto" }, found.where));
}

function pick(view, place) {
  view.at = Math.max(0, Math.min(place, view.found.length - 1));
  view.list.querySelectorAll("[role=option]").forEach((option, number) => {
    option.setAttribute("aria-selected", String(number === view.at));
    if (number === view.at) option.scrollIntoView({ block: "nearest" });
  });
  if (view.found.length) view.box.setAttribute("aria-activedescendant", `expected${view.at}`);
  else view.box.removeAttribute("aria-activedescendant");
}

function offer(view, found, detail) {
  view.found = found;
  view.list.replaceChildren(...found.map(optionOf));
  view.list.hidden = found.length === 0;
  view.box.setAttribute("aria-expanded", String(found.length > 0));
  view.detail.textContent = detail;
  pick(view, 0);
}

async function askDocuments(view) {
  const wanted = view.box.value.trim(), number = (view.asked = (view.asked ?? 0) + 1);
  if (!wanted) return offer(view, [], "");
  let found = [], detail = "";
  try {
    const answer = await fetch(new URL(`find/documents?q=${encodeURIComponent(wanted)}`, document.baseURI));
    const rows = await answer.json();
    if (answer.ok) found = rows;
    else detail = rows.error;
  } catch {
    detail = "The server is not responding. Try again in a moment.";
  }
  if (number !== view.asked) return undefined;
  return offer(view, found, detail || (found.length ? `${found.length}${found.length === 20 ? " or more" : ""} documents` : "No document has these words in its title, path or URL."));
}

function expect(root, view, place) {
  const chosen = view.found[place];
  if (!chosen) return;
  view.box.value = chosen.title;
  offer(view, [], "Tracing it through the strategy…");
  view.awaited = chosen.id;
  root.send("expect", chosen.id);
}

function listenForExpected(root, view) {
  let timer = 0;
  view.box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => askDocuments(view), WAIT);
  });
  view.box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && view.found.length) pick(view, view.at + step);
    else if (event.key === "Enter" && view.found.length) expect(root, view, view.at);
    else if (event.key === "Enter") askDocuments(view);
    else if (event.key === "Escape" && view.found.length) offer(view, [], "");
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  view.list.addEventListener("mousedown", (event) => event.preventDefault());
  view.list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) expect(root, view, Number(option.dataset.place));
  });
}

function expectedSection(root) {
  const box = make("input", { type: "text", role: "combobox", "aria-expanded": "false", "aria-controls": "expected", "aria-autocomplete": "list", "aria-label": "Expected document", placeholder: "Title or file name", autocomplete: "off", spellcheck: "false" });
  const list = make("ul", { id: "expected", role: "listbox", "aria-label": "Documents", hidden: true });
  const detail = make("p", { class: "sub", role: "status" }), funnel = make("div", { class: "fell" });
  const view = { box, list, detail, funnel, found: [], at: 0 };
  listenForExpected(root, view);
  root.expected = view;
  return make("section", { class: "part expected" }, make("h3", {}, "Find an expected document"), make("p", { class: "sub" }, "See where this strategy dropped it."), box, list, detail, funnel);
}

// The funnel: each step as wide as the passages it kept, with the document's rank, and where it was dropped.
function widthOf(count, most) {
  return count ? Math.max(6, (100 * Math.log(1 + count)) / Math.log(1 + most)) : 6;
}

// A step is as wide at the top as the passages that came in, and at the bottom as those it kept.
function coneOf(step, before, most, isFirst) {
  const [above, below] = [widthOf(before, most), widthOf(step.count ?? most, most)];
  const edges = [[50 - above / 2, 0], [50 + above / 2, 0], [50 + below / 2, 100], [50 - below / 2, 100]];
  const count = step.count === null ? "many" : counted(step.count);
  return make("span", { class: "cone" }, make("i", { style: `clip-path:polygon(${edges.map(([x, y]) => `${x}% ${y}%`).join(",")})`, "aria-hidden": "true" }),
    make("span", { class: "mono" }, count, isFirst ? " passages" : spoken(" passages")));
}

function stepRow(step, before, most, state, isFirst) {
  const mark = { kept: "✓", lost: "✕", after: "" }[state];
  const outcome = { kept: "kept", lost: "", after: "not reached" }[state];
  return make("li", { class: `step ${state}` },
    make("span", { class: "mark", "aria-hidden": "true" }, mark),
    make("span", { class: "name" }, step.title, spoken(outcome ? `, ${outcome}` : ""), step.detail && state !== "after" ? make("span", { class: "quiet stepdetail" }, step.detail) : null),
    coneOf(step, before, most, isFirst),
    make("span", { class: "where" }, step.rank === null ? null : make("span", { class: "mono" }, `rank ${counted(step.rank)}`), state === "lost" ? make("span", { class: "out" }, "dropped here") : null));
}

function funnelOf(expected) {
  const { steps } = expected, lost = steps.findIndex((step) => !step.kept);
  const most = Math.max(1, ...steps.map((step) => step.count ?? 1));
  const stateOf = (place) => (lost < 0 || place < lost ? "kept" : place === lost ? "lost" : "after");
  return make("ol", { class: "funnel", "aria-label": "Trace through the strategy" },
    steps.map((step, place) => stepRow(step, steps[Math.max(0, place - 1)].count ?? most, most, stateOf(place), place === 0)));
}

function paintExpected(root, expected) {
  const { funnel, detail, box } = root.expected;
  const isAwaited = root.expected.awaited !== undefined && root.expected.awaited === expected?.document;
  if (isAwaited) {
    root.expected.awaited = undefined;
    detail.textContent = "";
    requestAnimationFrame(() => funnel.scrollIntoView({ block: "nearest" }));
  }
  if (!expected) return funnel.replaceChildren();
  if (expected.error) return funnel.replaceChildren(make("p", { class: "error", role: "alert" }, expected.error));
  if (!box.value) box.value = expected.title;
  const look = expected.passage && make("button", { type: "button", class: "act", "data-turn": expected.passage }, "Explain its best passage");
  return funnel.replaceChildren(make("p", { class: "verdict" }, make("b", { dir: "auto" }, expected.title), `: ${expected.outcome}. `, expected.reason), funnelOf(expected), look || "");
}

function copyLink(button) {
  navigator.clipboard.writeText(window.location.href).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Copying is blocked by the browser"; });
}

// Columns of the same index, to explain the same passage for another strategy.
function chipsOf(data) {
  return make("span", { class: "columns", role: "group", "aria-label": "Explained for" }, data.columns.map((column) =>
    make("button", { type: "button", class: `chip hue-${column.hue}`, "data-column": column.name, "aria-pressed": String(column.own) }, shape(column), column.title)));
}

function headOf(data) {
  const place = data.rank === null ? "not retrieved" : `rank ${data.rank}`;
  return make("header", { class: "top" }, make("h2", { dir: "auto" }, data.title),
    make("p", { class: "facts" }, chipsOf(data), make("span", {}, place), data.score ? make("span", { class: "mono" }, data.score) : null,
      make("span", { class: "acts" }, make("button", { type: "button", class: "act", "data-act": "open" }, "Open document"),
        navigator.clipboard ? make("button", { type: "button", class: "act", "data-act": "copy" }, "Copy link") : null)),
    data.reason ? make("p", { class: "verdict" }, data.reason) : null,
    data.notes.map((note) => make("p", { class: "sub" }, note)));
}

// The funnel of a passage that was not retrieved.
function wayOf(data) {
  if (data.found || !data.steps.length) return null;
  return make("section", { class: "part" }, make("h3", {}, "Where it was dropped"), funnelOf(data));
}

// The head without a passage: only the search for an expected document.
function bareHead(data) {
  return make("header", { class: "top" }, make("p", { class: "facts" }, chipsOf(data)));
}

function draw(root, data) {
  if (data.error) {
    root.replaceChildren(make("p", { class: "error", role: "alert" }, data.error));
    return;
  }
  const article = (...parts) => root.replaceChildren(make("article", { class: `why hue-${data.strategy.hue}` }, parts));
  if (!data.passage) article(bareHead(data), expectedSection(root));
  else article(headOf(data), wayOf(data), scoreSection(data), featuresSection(data), wordsSection(root, data),
    make("div", { class: "pair" }, termsSection(data), elsewhereSection(data)), expectedSection(root));
}

function listen(root) {
  root.addEventListener("click", (event) => {
    const turned = event.target.closest("[data-turn]"), column = event.target.closest("[data-column]"), act = event.target.closest("[data-act]");
    if (turned) root.send("turn", turned.dataset.turn);
    else if (column) root.send("column", column.dataset.column);
    else if (act?.dataset.act === "copy") copyLink(act);
    else if (act) root.send("open", { document: root.data.document, start: root.data.start, end: root.data.end, cut: root.data.cut });
  });
}

function show(root, data) {
  if (!root.data) listen(root);
  root.data = data;
  const drawn = JSON.stringify({ ...data, expected: null });
  if (root.drawn !== drawn) {
    root.drawn = drawn;
    draw(root, data);
  }
  if (!data.error) paintExpected(root, data.expected);
}

export default function (component) {
  const root = component.parentElement.querySelector(".root"), data = component.data;
  root.send = component.setTriggerValue;
  afterPress(root, () => show(root, data));
}
