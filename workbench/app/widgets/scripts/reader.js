import { afterPress, counted, make, renderedText } from "./shared.js";

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

// The headings of the text: next to it if there is room, otherwise collapsed above it.
function outlineOf(data, page) {
  const headings = data.outline ?? [];
  if (headings.length < 2) return null;
  const top = Math.min(...headings.map((heading) => heading.level));
  const rows = headings.map((heading, number) => {
    const button = make("button", { type: "button", dir: "auto" }, heading.words || "…");
    button.style.setProperty("--depth", heading.level - top);
    button.addEventListener("click", () => {
      const place = page.querySelector(`[data-heading="${number}"]`);
      scrollTo(page, place, 12);
      place?.focus({ preventScroll: true });
    });
    return make("li", {}, button);
  });
  const isWide = !data.original && page.isWide;
  const outline = make("details", { class: "outline", open: isWide }, make("summary", {}, data.part ? "Outline of this part" : "Outline"), make("ol", {}, rows));
  followScroll(page, outline);
  return outline;
}

function scrollTo(page, place, above) {
  if (place) page.scrollTop += place.getBoundingClientRect().top - page.getBoundingClientRect().top - above;
}

// Mark the heading of the text in view.
function followScroll(page, outline) {
  const buttons = [...outline.querySelectorAll("button")];
  let waiting = false;
  const follow = () => {
    waiting = false;
    const edge = page.getBoundingClientRect().top + 40;
    const passed = [...page.querySelectorAll("[data-heading]")].findLastIndex((heading) => heading.getBoundingClientRect().top <= edge);
    buttons.forEach((button, number) => {
      if (number === passed) button.setAttribute("aria-current", "location");
      else button.removeAttribute("aria-current");
    });
    const own = buttons[passed], frame = outline.getBoundingClientRect(), box = own?.getBoundingClientRect();
    if (box?.height && (box.top < frame.top || box.bottom > frame.bottom)) outline.scrollTop += box.top - frame.top - frame.height / 3;
  };
  page.addEventListener("scroll", () => {
    if (!waiting) requestAnimationFrame(follow);
    waiting = true;
  });
  requestAnimationFrame(follow);
}

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

const WIDE = 700;  // px from which there is room for two panes, as in the style sheet

function draw(root, data) {
  const body = bodyOf(data);
  const page = make("div", { class: "page", tabindex: "0", role: "region", "aria-label": `Text of ${data.title}` }, body);
  page.isWide = root.clientWidth > WIDE;
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
