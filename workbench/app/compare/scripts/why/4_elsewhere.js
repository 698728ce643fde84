// Its rank by every other strategy: rank 1 at the left, beyond the top 200 at the right.
const LINE_ROW = 26, LAST = 200, BEYOND = 96, LINE_SPAN = 86, LINE_PAD = 4;

function across(rank) {
  return rank === null ? BEYOND : LINE_PAD + (LINE_SPAN * Math.log(Math.min(rank, LAST))) / Math.log(LAST);
}

function lineThrough(rows) {
  const at = rows.map((row, place) => [across(row.rank), (place + 0.5) * LINE_ROW]);
  const svg = make("svg:svg", { class: "line", viewBox: `0 0 100 ${rows.length * LINE_ROW}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  at.slice(1).forEach(([x, y], place) => {
    const [fromX, fromY] = at[place], bend = LINE_ROW * 0.45;
    const gone = rows[place].rank === null || rows[place + 1].rank === null;
    svg.append(make("svg:path", { d: `M${fromX} ${fromY} C${fromX} ${fromY + bend} ${x} ${y - bend} ${x} ${y}`, class: gone ? "gone" : null, "vector-effect": "non-scaling-stroke" }));
  });
  return svg;
}

function rankRow(row) {
  const place = row.rank === null ? `not in the top ${LAST}` : `rank ${row.rank}`;
  return make("li", { class: row.own ? "rankrow own" : "rankrow", "aria-label": `${row.title}: ${place}` }, make("span", { class: "name", "aria-hidden": "true" }, row.title),
    make("span", { class: "lane", "aria-hidden": "true" }, make("span", { class: "spot", style: `left:${across(row.rank)}%` }, shape(row))),
    make("span", { class: "mono total", "aria-hidden": "true" }, row.rank ?? "–"));
}

function elsewhereSection(data) {
  const asked = data.elsewhere.length > 1;
  return make("section", { class: "part" }, make("h3", {}, "Rank by other strategies"), make("p", { class: "sub" }, asked ? `Rank 1 is at the left; – means not in the top ${LAST}.` : "No other strategy is available."),
    make("div", { class: "ranks" }, make("ol", {}, data.elsewhere.map(rankRow)), lineThrough(data.elsewhere)));
}
