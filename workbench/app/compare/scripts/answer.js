import { afterPress, make, ms, spoken } from "../../widgets/scripts/shared.js";

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
  if (data.kind !== "extracts") return [make("p", { class: "extracted", dir: "auto" }, withMarks(data.text, data))];
  return data.text.split(/(?<=\[\d{1,3}\])\s+/).map((line) => make("blockquote", { dir: "auto" }, withMarks(line, data)));
}

function sourcesOf(data) {
  return make("ol", { class: "sources", "aria-label": "Cited passages" }, cited(data).map((number) => {
    const passage = data.passages[number - 1];
    return make("li", {}, make("button", { type: "button", class: "source", "data-number": number },
      make("span", { class: "cite mono", "aria-hidden": "true" }, number), make("span", { dir: "auto" }, passage.title), make("span", { class: "quiet", dir: "auto" }, passage.place)));
  }));
}

const SAID = {
  extracts: "Quoted from the passages, without a language model.",
  refused: "No answer: the passages do not cover the question.",
};

function statusOf(data) {
  if (data.state === "writing") return data.text ? "Writing…" : "Reading the passages…";
  if (data.state === "stopped") return "Cancelled.";
  if (data.state === "failed") return "The answer failed.";
  return SAID[data.kind] ?? `Written by ${data.model}; numbers open the cited passages.`;
}

function action(data) {
  const name = data.state === "writing" ? "stop" : data.state === "done" ? null : "again";
  return name && make("button", { type: "button", class: "act", "data-act": name }, name === "stop" ? "Cancel" : "Try again");
}

function draw(root, data) {
  const facts = data.ms === null ? `from ${data.strategy}` : `from ${data.strategy}, ${data.ms < 10000 ? ms(data.ms) : `${(data.ms / 1000).toFixed(1)} s`}`;
  root.head.replaceChildren(...[make("h2", {}, "Answer"), make("span", { class: "quiet", role: "status" }, statusOf(data)), action(data),
    make("span", { class: "facts quiet" }, facts)].filter(Boolean));
  root.body.setAttribute("aria-busy", String(data.state === "writing"));
  root.body.classList.toggle("waiting", data.state === "writing" && !data.text);
  root.body.replaceChildren(...(data.text ? textOf(data) : []));
  root.foot.replaceChildren(...[data.error && make("p", { class: "error", role: "alert" }, data.error), data.kind === "refused" ? null : sourcesOf(data),
    ...data.notes.map((note) => make("p", { class: "note" }, note))].filter(Boolean));
}

export default function (component) {
  const root = component.parentElement.querySelector(".root"), data = component.data;
  root.send = component.setTriggerValue;
  if (root.head === undefined) {
    Object.assign(root, { head: make("header", {}), body: make("div", { class: "body" }), foot: make("footer", {}) });
    root.replaceChildren(make("section", { class: "answer", "aria-label": "Answer" }, root.head, root.body, root.foot));
    root.addEventListener("click", (event) => {
      const numbered = event.target.closest("[data-number]"), act = event.target.closest("[data-act]");
      if (numbered) root.send("open", Number(numbered.dataset.number));
      else if (act) root.send(act.dataset.act, true);
    });
  }
  afterPress(root, () => {
    const drawn = JSON.stringify(data);
    if (root.drawn === drawn) return;
    root.drawn = drawn;
    draw(root, data);
  });
}
