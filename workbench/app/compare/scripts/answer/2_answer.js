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
