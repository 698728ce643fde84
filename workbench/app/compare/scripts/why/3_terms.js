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
