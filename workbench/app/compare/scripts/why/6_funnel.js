// The funnel: each step as wide as the passages it kept, with the document's rank, and where it was dropped.
function widthOf(count, most) {
  return count ? Math.max(6, (100 * Math.log(1 + count)) / Math.log(1 + most)) : 6;
}

// A step is as wide at the top as the passages that came in, and at the bottom as those it kept.
function coneOf(step, before, most, isFirst) {
  const [above, below] = [widthOf(before, most), widthOf(step.count ?? most, most)];
  const edges = [[50 - above / 2, 0], [50 + above / 2, 0], [50 + below / 2, 100], [50 - below / 2, 100]];
  const count = step.count === null ? "many" : counted(step.count);
  return make("span", { class: "cone" }, make("i", { style: `clip-path:polygon(${edges.map(([x, y]) => `${x}% ${y}%`).join(",")})`, "aria-hidden": "true" }),
    make("span", { class: "mono" }, count, isFirst ? " passages" : spoken(" passages")));
}

function stepRow(step, before, most, state, isFirst) {
  const mark = { kept: "✓", lost: "✕", after: "" }[state];
  const outcome = { kept: "kept", lost: "", after: "not reached" }[state];
  return make("li", { class: `step ${state}` },
    make("span", { class: "mark", "aria-hidden": "true" }, mark),
    make("span", { class: "name" }, step.title, spoken(outcome ? `, ${outcome}` : ""), step.said && state !== "after" ? make("span", { class: "quiet saidof" }, step.said) : null),
    coneOf(step, before, most, isFirst),
    make("span", { class: "where" }, step.rank === null ? null : make("span", { class: "mono" }, `rank ${counted(step.rank)}`), state === "lost" ? make("span", { class: "out" }, "dropped here") : null));
}

function funnelOf(expected) {
  const { steps } = expected, lost = steps.findIndex((step) => !step.kept);
  const most = Math.max(1, ...steps.map((step) => step.count ?? 1));
  const stateOf = (place) => (lost < 0 || place < lost ? "kept" : place === lost ? "lost" : "after");
  return make("ol", { class: "funnel", "aria-label": "Trace through the strategy" },
    steps.map((step, place) => stepRow(step, steps[Math.max(0, place - 1)].count ?? most, most, stateOf(place), place === 0)));
}

function paintExpected(root, expected) {
  const { funnel, said, box } = root.expected;
  const isAwaited = root.expected.awaited !== undefined && root.expected.awaited === expected?.document;
  if (isAwaited) {
    root.expected.awaited = undefined;
    said.textContent = "";
    requestAnimationFrame(() => funnel.scrollIntoView({ block: "nearest" }));
  }
  if (!expected) return funnel.replaceChildren();
  if (expected.error) return funnel.replaceChildren(make("p", { class: "error", role: "alert" }, expected.error));
  if (!box.value) box.value = expected.title;
  const look = expected.passage && make("button", { type: "button", class: "act", "data-turn": expected.passage }, "Explain its best passage");
  return funnel.replaceChildren(make("p", { class: "verdict" }, make("b", { dir: "auto" }, expected.title), `: ${expected.outcome}. `, expected.reason), funnelOf(expected), look || "");
}
