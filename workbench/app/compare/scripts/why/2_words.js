// Token matches: hovering a word of the question highlights its matches in the passage.
function pieceOf([text, matched, like, likes]) {
  const words = Object.keys(likes);
  if (!matched && !like && !words.length) return text;
  const node = make(matched ? "mark" : "span", { class: `piece like${like}` }, text);
  return Object.assign(node, { likes });
}

function wordOf(data, [text, place]) {
  if (place === null) return text;
  return make("button", { type: "button", class: "word", "data-word": place, "aria-pressed": "false", "aria-describedby": "why-likes" }, text);
}

function likesOf(data, place) {
  const likes = data.likes[place] ?? [];
  const [word] = data.question.find((piece) => piece[1] === place);
  if (!likes.length) return [make("b", { dir: "auto" }, word), " matches nothing in the passage."];
  return [make("b", { dir: "auto" }, word), " matches ", likes.flatMap(([like, similarity], at) => [at ? " · " : "", make("span", { dir: "auto" }, like), " ", make("span", { class: "mono" }, similarity)])].flat();
}

function light(root, place) {
  const { section, data } = root.words;
  section.classList.toggle("lit", place !== null);
  section.querySelectorAll(".word").forEach((one) => one.classList.toggle("on", Number(one.dataset.word) === place));
  section.querySelectorAll(".piece").forEach((piece) => {
    const strength = place === null ? undefined : piece.likes[place];
    piece.classList.toggle("on", strength !== undefined);
    piece.style.setProperty("--strength", strength ?? 0);
  });
  section.querySelector(".likes").replaceChildren(...(place === null ? [restingHint(data)] : likesOf(data, place)));
}

function restingHint(data) {
  return data.likes.length ? "Hover a query word to see what it matched." : "This index has no token vectors, so only exact words are marked.";
}

// Scroll the best match into view, within the passage's frame.
function toStrongest(section, place) {
  const pieces = [...section.querySelectorAll(".piece.on")].sort((a, b) => b.likes[place] - a.likes[place]);
  const frame = section.querySelector(".passage");
  if (pieces[0] && frame.contains(pieces[0])) frame.scrollTop = pieces[0].offsetTop - frame.clientHeight / 2;
}

function listenForWords(root, section) {
  let pinned = null;
  const wordAt = (event) => event.target.closest?.(".word") ?? null;
  const show = (event) => { const word = wordAt(event); if (word) light(root, Number(word.dataset.word)); };
  const rest = () => light(root, pinned);
  section.addEventListener("mouseover", (event) => (wordAt(event) ? show(event) : rest()));
  section.addEventListener("mouseleave", rest);
  section.addEventListener("focusin", (event) => { if (wordAt(event)) { show(event); toStrongest(section, Number(wordAt(event).dataset.word)); } });
  section.addEventListener("focusout", rest);
  section.addEventListener("click", (event) => {
    const word = wordAt(event);
    if (!word) return;
    const place = Number(word.dataset.word);
    pinned = pinned === place ? null : place;
    section.querySelectorAll(".word").forEach((one) => one.setAttribute("aria-pressed", String(Number(one.dataset.word) === pinned)));
    light(root, place);
    toStrongest(section, place);
  });
}

// The passage, rendered or raw; the choice is kept from passage to passage.
function readOf(root, data) {
  if (data.blocks && !root.raw) return renderedText("read", data.blocks, pieceOf);
  return make("div", { class: "read", dir: "auto" }, data.text.map(pieceOf));
}

function formButton(root, data) {
  if (!data.blocks) return null;
  const words = () => (root.raw ? "Rendered" : "Raw text");
  const button = make("button", { type: "button", class: "act form" }, words());
  button.addEventListener("click", () => {
    root.raw = !root.raw;
    button.textContent = words();
    root.words.section.querySelector(".passage > :last-child").replaceWith(readOf(root, data));
  });
  return button;
}

function wordsSection(root, data) {
  const section = make("section", { class: "part words" }, make("h3", {}, "Token matches"),
    make("p", { class: "asked", dir: "auto" }, data.question.map((piece) => wordOf(data, piece))),
    make("p", { class: "likes", id: "why-likes", role: "status" }),
    make("div", { class: "passage", tabindex: "0", role: "region", "aria-label": "Passage" },
      data.context.length ? make("p", { class: "context", dir: "auto" }, data.context.map(pieceOf)) : null,
      readOf(root, data)),
    make("p", { class: "key quiet" }, make("mark", {}, "exact word"), " ", data.likes.length ? make("span", { class: "like2" }, "similar word") : null, formButton(root, data)));
  root.words = { section, data };
  section.querySelector(".likes").append(restingHint(data));
  listenForWords(root, section);
  return section;
}
