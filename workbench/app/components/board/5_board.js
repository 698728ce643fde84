const ROWS_OF_KEYS = { ArrowDown: 1, ArrowUp: -1 }, COLUMNS_OF_KEYS = { ArrowRight: 1, ArrowLeft: -1 };

function draw(root, data) {
  const columns = data.columns;
  const holder = make("div", { class: "bump-holder" });
  const caption = make("div", { class: "caption" }, captionOf(columns, null));
  const bump = make("div", { class: "bump" }, holder, caption);
  const grid = make("div", { class: "grid", style: `--columns:${columns.length};--least:${columns.length > 1 ? 218 : 260}px` },
    columns.map((column) => head(column, data.slowest)), columns.length > 1 ? bump : null,
    columns.map((column) => columnOf(column, data.judging !== null)));
  const board = make("div", { class: "board" }, data.judging ? judgingHint(data.judging) : null, make("div", { class: "scroller", tabindex: "-1" }, grid),
    make("p", { class: "hint" }, make("kbd", {}, "/"), " question  ", make("kbd", {}, "↑"), make("kbd", {}, "↓"), make("kbd", {}, "←"), make("kbd", {}, "→"),
      " between passages  ", make("kbd", {}, "Enter"), " opens  ", make("kbd", {}, "W"), " why  ", make("mark", {}, "same word"), "  ",
      make("u", { class: "like2" }, "like a word of the question"), ", by late interaction"),
    figures(data));
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

function toggleWhy(item) {
  const table = item.querySelector(".legs");
  table.hidden = !table.hidden;
  item.querySelector(".why").setAttribute("aria-expanded", String(!table.hidden));
}

function listen(root) {
  const open = ({ hit, cut }) => root.send("open", { document: hit.document, start: hit.start, end: hit.end, cut });
  root.addEventListener("click", (event) => {
    const promoted = event.target.closest(".promote");
    if (promoted) root.send("promote", promoted.closest(".serving").dataset.column);
    const item = event.target.closest(".card");
    if (!item) return;
    const grade = event.target.closest(".grade");
    if (event.target.closest(".why")) toggleWhy(item);
    else if (grade) mark(root, item, JSON.parse(grade.dataset.grade));
    else if (event.target.closest(".grades")) return;
    else if (!event.target.closest(".legs")) open(item);
  });
  root.addEventListener("keydown", (event) => {
    const item = event.target.closest(".card");
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = event.key in ROWS_OF_KEYS || event.key in COLUMNS_OF_KEYS;
    if (moves) {
      const to = neighbour(root, item, event.key);
      if (to) focusOn(root, to.querySelector(".title"));
    } else if (event.key === "w" || event.key === "W") toggleWhy(item);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  for (const [name, on] of [["mouseover", true], ["focusin", true], ["mouseleave", false], ["focusout", false]]) {
    root.addEventListener(name, (event) => {
      const item = event.target.closest?.(".card");
      if (on && item) root.follow(item.dataset.id);
      if (on && !item && name === "mouseover" && !event.target.closest?.(".bump")) root.follow(null);
      if (!on && !event.relatedTarget?.closest?.(".card")) root.follow(null);
    });
  }
}

// What changes while one works with the board is painted onto it; only other hits, or another order, draw it anew.
function lasting({ judging, serving, ...data }) {
  return JSON.stringify([data, judging && [judging.about, judging.title]]);
}

export default function (component) {
  const root = component.parentElement.querySelector(".root"), data = component.data;
  root.send = component.setTriggerValue;
  root.keep = component.setStateValue;
  const first = root.drawn === undefined, drawn = lasting(data);
  if (first) Object.assign(root, { pending: [], sent: 0 });
  takeGrades(root, data);
  root.data = data;
  if (first) {
    listen(root);
    listenForGrades(root);
  }
  if (root.drawn !== drawn) {
    root.stopWatching?.();
    root.drawn = drawn;
    draw(root, data);
  }
  paintGrades(root);
  paintServing(root);
}
