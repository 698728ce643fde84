// The bump chart: a row per rank, a column per strategy, a line per passage found by several of them.
const ROW = 17, PAD = 12, LETTER = 6.4, LEAST_LABEL = 9;  // px of a letter; letters of the shortest useful label

function trails(columns) {
  const found = new Map();
  columns.forEach((column, place) => column.hits.forEach((hit) => {
    if (!found.has(hit.id)) found.set(hit.id, { id: hit.id, title: hit.title, place: hit.place, at: [] });
    const { at } = found.get(hit.id);
    if (at.at(-1)?.place !== place) at.push({ place, rank: hit.rank });  // the best of several pieces of one text
  }));
  return [...found.values()];
}

function curve(a, b) {
  const bend = (b.x - a.x) * 0.42;
  return `M${a.x} ${a.y} C${a.x + bend} ${a.y} ${b.x - bend} ${b.y} ${b.x} ${b.y}`;
}

function label(trail, at, spot, last, room) {
  const outside = at.place === 0 ? -1 : at.place === last ? 1 : 0;
  const letters = Math.floor(room / LETTER);
  if (outside === 0 || letters < LEAST_LABEL) return null;
  const text = trail.title.length > letters ? `${trail.title.slice(0, letters - 1)}…` : trail.title;
  return make("svg:text", { class: "label", x: spot.x + outside * 14, y: spot.y + 4, "text-anchor": outside < 0 ? "end" : "start" }, text);
}

function drawBump(holder, columns, width, onFollow, onChoose) {
  const rows = Math.max(1, ...columns.map((column) => column.hits.length));
  const height = rows * ROW + 2 * PAD;
  const step = (width + 20) / columns.length;
  const spot = ({ place, rank }) => ({ x: Math.round(place * step + (step - 20) / 2), y: PAD + (rank - 0.5) * ROW });
  const svg = make("svg:svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": "Ranks of each passage across the strategies" });
  const shades = make("svg:defs");
  columns.slice(1).forEach((column, place) => {
    const [from, to] = [spot({ place, rank: 1 }).x, spot({ place: place + 1, rank: 1 }).x];
    shades.append(make("svg:linearGradient", { id: `shade${place}`, gradientUnits: "userSpaceOnUse", x1: from, x2: to, y1: 0, y2: 0 },
      make("svg:stop", { offset: 0.15, class: `hue-${columns[place].hue}`, style: "stop-color:var(--hue)" }),
      make("svg:stop", { offset: 0.85, class: `hue-${column.hue}`, style: "stop-color:var(--hue)" })));
  });
  svg.append(shades);
  for (let rank = 1; rank <= rows; rank += 1) {
    const y = PAD + (rank - 0.5) * ROW;
    svg.append(make("svg:text", { class: "axis", x: 16, y: y + 4 }, rank));
  }
  for (const trail of trails(columns)) {
    const group = make("svg:g", { class: "trail", "data-id": trail.id });
    trail.at.slice(1).forEach((to, place) => {
      const from = trail.at[place];
      const near = to.place - from.place === 1;
      const d = curve(spot(from), spot(to));
      group.append(make("svg:path", { class: "line", d, stroke: near ? `url(#shade${from.place})` : "var(--quiet)", "stroke-dasharray": near ? null : "2 5" }));
      group.append(make("svg:path", { class: "hit-area", d }));
    });
    for (const at of trail.at) {
      const column = columns[at.place], { x, y } = spot(at);
      const dot = make("svg:g", { class: `dot hue-${column.hue}`, transform: `translate(${x - 5} ${y - 5})` },
        make("svg:rect", { x: -6, y: -3, width: 22, height: 16, fill: "transparent" }), SHAPES[column.shape]());
      dot.addEventListener("click", () => onChoose(at.place, trail.id));
      group.append(dot, ...[label(trail, at, { x, y }, columns.length - 1, step / 2 - 46)].filter(Boolean));
    }
    group.addEventListener("mouseenter", () => onFollow(trail.id));
    group.addEventListener("mouseleave", () => onFollow(null));
    svg.append(group);
  }
  holder.replaceChildren(svg);
}

function captionOf(columns, id) {
  const hint = ["Each line tracks one passage across the rankings."];
  if (!id) return hint;
  const trail = trails(columns).find((one) => one.id === id);
  if (!trail) return hint;
  const where = columns.map((column, place) => {
    const at = trail.at.find((one) => one.place === place);
    return make("span", { class: "move" }, shape(column), `${column.title} ${at ? at.rank : "–"}`);
  });
  return [make("b", {}, trail.place ? `${trail.title} › ${trail.place}` : trail.title), ...where];
}
