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
