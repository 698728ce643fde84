// Each matched word with its share of BM25; the words that the passage lacks stand below.
function termRow(term) {
  const percent = Math.round(100 * term.share);
  return make("li", { class: "term", title: `BM25 ${term.score}` }, make("span", { class: "name", dir: "auto" }, term.word),
    make("span", { class: "quiet times" }, `× ${term.times}`), make("span", { class: "track hue-orange", "aria-hidden": "true" }, make("i", { style: `width:${percent}%` })),
    make("span", { class: "mono total" }, `${percent} %`));
}

function termsSection(data) {
  const lacks = data.missing.length ? make("p", { class: "lacks" }, make("span", { class: "quiet" }, "Not in it: "), data.missing.map((word) => make("span", { class: "missing", dir: "auto" }, word))) : null;
  return make("section", { class: "part" }, make("h3", {}, "Its words"), make("p", { class: "sub" }, data.terms.length ? "Shares of its BM25 score." : "It has none of the question's words."),
    data.terms.length ? make("ol", { class: "terms" }, data.terms.map(termRow)) : null, lacks);
}
