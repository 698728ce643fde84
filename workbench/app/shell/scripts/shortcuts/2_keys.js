// "?" lists the keys; the list is the one place that knows them all.
const KEYS = [
  ["Everywhere", [["?", "this list"], ["Ctrl K", "find a page, a control of this page, a source, document, test set, experiment or action"], ["Ctrl Enter", "press the main button of the form or dialog"], ["/", "to the question"], ["Esc", "close a dialog"]]],
  ["Between passages", [["↓", "from the question to the first passage"], ["↑ ↓", "next and previous passage; from the first one up to Promote"], ["← →", "the same passage in the next column"], ["Enter", "open the document at the passage"], ["W", "why it is there"]]],
  ["In tables", [["← →", "between the heads of the columns, by which Enter sorts"], ["↑ ↓", "from row to row"]]],
  ["While judging", [["1", "relevant"], ["2", "partly"], ["3", "not relevant"], ["0", "take the judgment back"], ["N", "next question without a judgment"], ["P", "previous question"]]],
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
