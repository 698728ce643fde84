function legend(data, toFound) {
  const parts = [make("span", {}, `${data.passages} ${data.passages === 1 ? "passage" : "passages"}, tinted in turn`)];
  if (data.found) {
    const jump = make("button", { type: "button" }, "Go to the found passage");
    jump.addEventListener("click", toFound);
    parts.push(make("span", { class: "stretch found" }, "found"), jump);
  }
  if (data.original) parts.push(make("a", { href: data.original, target: "_blank", rel: "noopener" }, "Open the original"));
  return make("p", { class: "legend" }, parts);
}

export default function (component) {
  const root = component.parentElement.querySelector(".root"), data = component.data;
  const drawn = JSON.stringify(data);
  if (root.drawn === drawn) return;
  root.drawn = drawn;
  const body = make("div", { class: "body" }, data.stretches.map((one) =>
    make("span", { class: `stretch ${one.kind}`, "data-passage": one.passage }, one.text)));
  const page = make("div", { class: "page", tabindex: "0", role: "region", "aria-label": `Text of ${data.title}` }, body);
  const toFound = () => {
    const found = body.querySelector(".found");
    if (found) page.scrollTop = found.offsetTop - page.clientHeight * 0.25;
  };
  const panes = make("div", { class: data.original ? "reader with-original" : "reader" }, page);
  if (data.original) {
    panes.append(make("iframe", { class: "original", src: `${data.original}#page=${data.page || 1}&navpanes=0&view=FitH`, title: `Original of ${data.title}` }));
  }
  root.replaceChildren(legend(data, toFound), panes);
  page.style.position = "relative";
  requestAnimationFrame(() => requestAnimationFrame(toFound));
}
