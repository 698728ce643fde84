function stretchOf(piece) {
  return make("span", { class: `stretch ${piece.kind}`, "data-passage": piece.passage }, piece.text);
}

function bodyOf(data) {
  if (data.form === "rendered") return renderedText("body", data.blocks, stretchOf);
  return make("div", { class: data.type === "code" ? "body raw of-code" : "body raw", dir: data.type === "code" ? "ltr" : "auto" }, data.stretches.map(stretchOf));
}

// The scroll position is kept when the form changes; a newly opened document starts at its found passage.
function placeIn(root, data, page, toFound) {
  const turned = root.last?.document === data.document && root.last.part === data.part?.start && root.last.form !== data.form;
  const share = turned ? root.last.share() : 0, paged = root.paged;
  root.paged = false;
  root.last = { document: data.document, part: data.part?.start, form: data.form, share: () => page.scrollTop / Math.max(1, page.scrollHeight) };
  return () => {
    if (turned && !data.shown) page.scrollTop = share * page.scrollHeight;
    else if (!paged) toFound();
  };
}

function draw(root, data) {
  const body = bodyOf(data);
  const page = make("div", { class: "page", tabindex: "0", role: "region", "aria-label": `Text of ${data.title}` }, body);
  const toFound = () => scrollTo(page, body.querySelector(".found"), page.clientHeight * 0.25);
  const outline = outlineOf(data, page);
  const settle = placeIn(root, data, page, toFound);
  const panes = make("div", { class: ["reader", data.original && "with-original", outline && !data.original && "with-outline"].filter(Boolean).join(" ") }, outline, page);
  if (data.original) {
    panes.append(make("iframe", { class: "original", src: `${data.original}#page=${data.page || 1}&navpanes=0&view=FitH`, title: `Original of ${data.title}` }));
  }
  root.replaceChildren(legend(root, data, toFound), panes);
  requestAnimationFrame(() => requestAnimationFrame(settle));
}

export default function (component) {
  const root = component.parentElement.querySelector(".root"), data = component.data;
  root.send = component.setTriggerValue;
  const drawn = JSON.stringify(data);
  if (root.drawn === drawn) return;
  root.drawn = drawn;
  afterPress(root, () => draw(root, data));
}
