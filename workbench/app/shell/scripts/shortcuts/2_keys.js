// The list of all keys, shown by "?".
const KEYS = [
  ["Everywhere", [["?", "show this list"], ["Ctrl K", "find a page, control, document, source, test set, experiment or action"], ["Ctrl Enter", "click the main button of the form or dialog"], ["/", "go to the question"], ["Esc", "close a dialog"]]],
  ["Between passages", [["↓", "go from the question to the first passage"], ["↑ ↓", "previous or next passage; up from the first to Promote"], ["← →", "same passage in the next column"], ["Enter", "open the document at this passage"], ["W", "explain its rank"]]],
  ["In tables", [["← →", "move between column headings; Enter sorts"], ["↑ ↓", "move between rows"]]],
  ["While judging", [["1", "relevant"], ["2", "partly"], ["3", "not relevant"], ["0", "clear the judgment"], ["N", "next unjudged question"], ["P", "previous question"]]],
];

function keysDialog(root) {
  const dialog = make("dialog", { class: "keys", "aria-label": "Keys" }, make("h2", {}, "Keys"),
    KEYS.map(([title, rows]) => make("section", {}, make("h3", {}, title), make("dl", {},
      rows.flatMap(([key, what]) => [make("dt", {}, key.split(" ").map((one) => make("kbd", {}, one))), make("dd", {}, what)])))),
    make("button", { type: "button", class: "close" }, "Close"));
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  closeOnBackdrop(dialog);
  root.append(dialog);
  return dialog;
}

function closeOnBackdrop(dialog) {
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
}
