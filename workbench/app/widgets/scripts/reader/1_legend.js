// The line above the text: passages, a button to the found one, parts of a long text, and the two forms.
function formsOf(root, data) {
  if (!data.can_turn) return null;
  const names = { rendered: "Rendered", raw: "Raw text" };
  return make("span", { class: "forms", role: "group", "aria-label": "Text format" }, Object.entries(names).map(([form, words]) => {
    const button = make("button", { type: "button", "aria-pressed": String(data.form === form) }, words);
    button.addEventListener("click", () => data.form !== form && root.send("form", form));
    return button;
  }));
}

function go(words, act, isOff = false) {
  const button = make("button", { type: "button", class: "go", disabled: isOff }, words);
  button.addEventListener("click", act);
  return button;
}

function partsOf(root, data) {
  if (!data.part) return [];
  const { start, end, of } = data.part, length = end - start;
  const turn = (place) => { root.paged = true; root.send("part", String(place)); };
  return [make("span", {}, `Characters ${counted(start + 1)} to ${counted(end)} of ${counted(of)}`),
    go("Previous", () => turn(Math.max(0, start - length)), start === 0), go("Next", () => turn(end), end === of)];
}

function legend(root, data, toFound) {
  const parts = [make("span", {}, `${counted(data.passages)} ${data.passages === 1 ? "passage" : "passages"} (alternating shading)`)];
  if (data.found) {
    parts.push(make("span", { class: "stretch found" }, "found"),
      go("Go to found passage", () => (data.shown ? toFound() : root.send("part", ""))));
  }
  parts.push(...partsOf(root, data));
  if (data.original) parts.push(make("a", { href: data.original, target: "_blank", rel: "noopener" }, "Open original"));
  parts.push(formsOf(root, data));
  return make("div", { class: "legend" }, parts);
}
