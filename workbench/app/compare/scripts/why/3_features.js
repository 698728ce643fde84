// The features of a learned ranker: value, weight, and share of the score as a bar.
function featureRow(feature) {
  const percent = Math.round(100 * feature.share);
  return make("li", { class: "feature", title: `${feature.why}; weight ${feature.weight}` }, make("span", { class: "name" }, feature.title),
    make("span", { class: "quiet mono" }, feature.value), make("span", { class: "quiet mono" }, feature.weight),
    make("span", { class: "track hue-yellow", "aria-hidden": "true" }, make("i", { style: `width:${percent}%` })), make("span", { class: "mono total" }, `${percent}%`));
}

function featuresSection(data) {
  if (!data.features.length) return null;
  return make("section", { class: "part" }, make("h3", {}, "Ranker features"),
    make("p", { class: "sub" }, "Value, weight and share of the score. With a negative weight, a low value contributes most."),
    make("ol", { class: "features" }, data.features.map(featureRow)));
}
