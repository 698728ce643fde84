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
  const beside = !data.original && window.matchMedia("(min-width: 821px)").matches;
  const outline = make("details", { class: "outline", open: beside }, make("summary", {}, data.part ? "Outline of this part" : "Outline"), make("ol", {}, rows));
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
