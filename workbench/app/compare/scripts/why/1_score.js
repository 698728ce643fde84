// The parts of a score: a bar per hit, stacked by leg, with the hits above and below for comparison.
function stackOf(bar) {
  const parts = bar.parts.map((part) => `${part.title} ${part.adds.toFixed(3)}`).join(", ");
  return make("span", { class: "stack", role: "img", "aria-label": `${bar.score} of 1: ${parts || "no contributions"}` },
    bar.parts.map((part) => make("i", { class: `hue-${part.hue}`, style: `width:${100 * part.adds}%`, title: `${part.title} +${part.adds.toFixed(3)}`, "data-adds": part.adds })));
}

function barRow(bar) {
  const cells = [make("span", { class: "rank mono" }, bar.rank), make("span", { class: "who", dir: "auto" }, bar.title), stackOf(bar), make("span", { class: "mono total" }, bar.score)];
  if (bar.own) return make("li", { class: "barrow own", "aria-current": "true" }, cells);
  return make("li", {}, make("button", { type: "button", class: "barrow", "data-turn": bar.passage, title: "Explain this one" }, cells));
}

function legRow(leg, strategy) {
  const place = leg.rank === null ? "" : `rank ${leg.rank} ${leg.of}`;
  const less = leg.part ? (leg.vote < 1 ? `weight ${Math.round(100 * leg.vote)}% for this question` : "") : `not used by ${strategy.title}`;
  return make("li", { class: `leg hue-${leg.hue}${leg.part ? "" : " apart"}` },
    make("span", { class: "swatch", "aria-hidden": "true" }), make("span", { class: "name" }, leg.title),
    make("span", { class: "mono" }, leg.score), make("span", { class: "quiet unit" }, leg.unit),
    make("span", { class: "quiet at" }, [place, less].filter(Boolean).join(" · ")),
    make("span", { class: "mono adds" }, leg.adds === null ? "–" : `+${leg.adds.toFixed(3)}`));
}

function scoreSub(data) {
  if (!data.bars.length) return "Not retrieved, so there is no score to break down. These are its scores over the whole scope.";
  const [most] = [...data.legs].filter((leg) => leg.adds).sort((a, b) => b.adds - a.adds);
  if (!most) return "No leg contributes to it.";
  const others = data.bars.length > 1 ? " Neighbouring hits are shown for comparison." : "";
  const share = Math.round((100 * most.adds) / Number(data.score));
  return share >= 100 ? `“${most.title}” contributes all of it.${others}` : `“${most.title}” contributes most: ${share}% of ${data.score}.${others}`;
}

function scoreSection(data) {
  return make("section", { class: "part" }, make("h3", {}, "Score breakdown"), make("p", { class: "sub" }, scoreSub(data)),
    data.bars.length ? make("ol", { class: "bars" }, data.bars.map(barRow)) : null,
    make("ul", { class: "legs" }, data.legs.map((leg) => legRow(leg, data.strategy))));
}
