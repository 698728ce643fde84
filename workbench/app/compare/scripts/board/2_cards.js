function head(column, slowest) {
  const total = column.total || 1;
  const bar = make("div", { class: "stages", "aria-hidden": "true", style: `width:${Math.max(8, (100 * column.total) / (slowest || 1))}%` });
  column.stages.forEach((stage, place) => {
    bar.append(make("i", { class: `s${Math.min(place, 6)}`, style: `width:${(100 * stage.ms) / total}%`, title: `${stage.name} ${ms(stage.ms)}` }));
  });
  return make("header", { class: `head hue-${column.hue}`, title: column.summary },
    make("div", { class: "name" }, shape(column), make("h2", {}, column.strategy, column.letter ? [" ", make("span", { class: "index" }, `${column.letter} `, column.index)] : null), make("span", { class: "serving", "data-column": column.name }), make("span", { class: "time mono" }, ms(column.total))),
    bar,
    make("p", { class: "tally", hidden: true }),
    ...column.notes.map((note) => make("p", { class: "note" }, note)));
}

function letterOf(column) {
  return column.letter ? make("span", { class: "letter", "aria-hidden": "true" }, column.letter) : null;
}

function moved(other) {
  if (other.rank === null) {
    return make("span", { class: "move gone" }, shape(other), letterOf(other), make("span", { "aria-hidden": "true" }, "–"),
      spoken(`not found by ${other.title}`));
  }
  const sign = other.moved > 0 ? `▲${other.moved}` : other.moved < 0 ? `▼${-other.moved}` : "=";
  const how = other.moved > 0 ? `, ${other.moved} higher` : other.moved < 0 ? `, ${-other.moved} lower` : ", the same";
  const sentence = `${other.title} ranks it ${other.rank}${how}`;
  return make("span", { class: "move", title: sentence }, shape(other), letterOf(other), make("span", { "aria-hidden": "true" }, sign), spoken(sentence));
}

// Words of the question are highlighted; similar words are underlined, thicker for higher similarity.
function markedPiece([matched, segments]) {
  const words = segments.map(([text, like]) => (like ? make("u", { class: `like${like}` }, text) : text));
  if (matched) return make("mark", {}, words);
  return words.length === 1 ? words[0] : make("span", {}, words);
}

function copiesOf(hit) {
  if (hit.copies.length === 0) return null;
  const count = hit.copies.length === 1 ? "1 copy" : `${hit.copies.length} copies`;
  return make("details", { class: "copies" }, make("summary", {}, count, spoken(` of ${hit.title}`)),
    make("ul", {}, hit.copies.map(([title, path]) => make("li", { title: path, dir: "auto" }, title))));
}

function card(hit, column, first, judging) {
  const onlyHere = hit.others.length > 0 && hit.others.every((other) => other.rank === null);
  const title = make("button", { class: "title", type: "button", tabindex: first ? "0" : "-1", title: hit.path, dir: "auto" }, hit.title,
    spoken(`, rank ${hit.rank} in ${column.title}, score ${hit.score}`));
  const item = make("li", { class: `card hue-${column.hue}`, "data-id": hit.id, "data-key": hit.key },
    make("div", { class: "top" }, make("span", { class: "rank mono", "aria-hidden": "true" }, hit.rank), title,
      make("span", { class: "score mono", "aria-hidden": "true" }, hit.score)),
    make("div", { class: "bar", "aria-hidden": "true" }, make("i", { style: `width:${100 * hit.share}%` })),
    make("div", { class: "place", title: hit.place, dir: "auto" }, hit.place || "\u00a0"),
    renderedText("text", hit.text, markedPiece),
    copiesOf(hit),
    make("div", { class: "foot" },
      onlyHere ? make("span", { class: "only", title: `Only ${column.title} found it` }, "new", spoken(`: only ${column.title} found it`)) : hit.others.map(moved),
      make("button", { class: "why", type: "button", tabindex: "-1", "aria-haspopup": "dialog" }, "Why", spoken(` ${hit.title} is here`))),
    judging ? grades() : null);
  return Object.assign(item, { hit, cut: column.cut, column: column.name });
}

function columnOf(column, judging) {
  if (column.hits.length === 0) {
    return make("div", { class: "column" }, make("p", { class: "none" }, "Nothing found. ", make("button", { type: "button", class: "act", "data-expected": column.name }, "Find an expected document", spoken(` in ${column.title}`))));
  }
  return make("ol", { class: "column", "aria-label": `${column.title}: ${column.hits.length} passages` },
    column.hits.map((hit, place) => card(hit, column, place === 0, judging)));
}
