// An answer's text: citations like [2] become buttons that open the passage; each extract has its own line.
const MARK = /\[(\d{1,3})\]/g;

function withMarks(text, data) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(MARK)) {
    const number = Number(found[1]), passage = data.passages[number - 1];
    if (!passage) continue;
    parts.push(...held(text.slice(at, found.index), citation(number, passage)));
    at = found.index + found[0].length;
  }
  parts.push(text.slice(at));
  return parts;
}

// A citation never starts a line: it stays with the word before it.
function held(text, mark) {
  const [, before, word] = text.match(/^([^]*?)(\S*)\s*$/);
  return [before, make("span", { class: "held" }, word && `${word}\u202f`, mark)];
}

function citation(number, passage) {
  return make("button", { type: "button", class: "cite mono", "data-number": number, title: [passage.title, passage.place].filter(Boolean).join(" › ") },
    number, spoken(` opens ${passage.title}`));
}

function cited(data) {
  const numbers = [...data.text.matchAll(MARK)].map((found) => Number(found[1]));
  return [...new Set(numbers)].filter((number) => data.passages[number - 1]);
}

function textOf(data) {
  if (data.kind !== "extracts") return [make("p", { class: "said", dir: "auto" }, withMarks(data.text, data))];
  return data.text.split(/(?<=\[\d{1,3}\])\s+/).map((line) => make("blockquote", { dir: "auto" }, withMarks(line, data)));
}

function sourcesOf(data) {
  return make("ol", { class: "sources", "aria-label": "Cited passages" }, cited(data).map((number) => {
    const passage = data.passages[number - 1];
    return make("li", {}, make("button", { type: "button", class: "source", "data-number": number },
      make("span", { class: "cite mono", "aria-hidden": "true" }, number), make("span", { dir: "auto" }, passage.title), make("span", { class: "quiet", dir: "auto" }, passage.place)));
  }));
}
