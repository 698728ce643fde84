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
