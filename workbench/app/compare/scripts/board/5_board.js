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
