// The controls of the page, or of the dialog over it, by their visible names: Ctrl+K clicks or focuses them.
const PRESSED = ".stButton button, .stPopover button, .stFormSubmitButton button, .stDownloadButton button, .stButtonGroup button, [data-testid=stExpander] summary, [role=tab], .promote";
const ENTERED = ".stTextInput, .stTextArea, .stNumberInput, .stSelectbox, .stMultiSelect";
const MOST_HERE = 12;  // before anything is typed

function nameOf(element) {
  const copy = element.cloneNode(true);
  copy.querySelectorAll("[data-testid=stIconMaterial], svg, [aria-hidden=true]").forEach((sign) => sign.remove());
  return copy.textContent.replace(/\s+/g, " ").trim();
}

function controlsNow(wanted) {
  const dialogs = document.querySelectorAll("[role=dialog]"), place = dialogs[dialogs.length - 1] ?? document.querySelector("[data-testid=stMain]");
  const board = place?.contains(window.workbenchBoard?.getRootNode().host ?? null) ? window.workbenchBoard : null;
  const within = (selector) => [place, board].flatMap((root) => [...(root?.querySelectorAll(selector) ?? [])]);
  const pressed = within(PRESSED).map((element) => ({ title: nameOf(element), act: () => element.click(), element, isPill: element.matches(".stButtonGroup button") }));
  const entered = within(ENTERED).map((element) => ({ title: nameOf(element.querySelector("label p") ?? element), act: () => element.querySelector("input, textarea, button")?.focus(), element }));
  const found = [...pressed, ...entered].filter(({ title, element }) => title && !element.disabled && element.checkVisibility());
  const named = found.filter(({ title, isPill }) => (wanted ? title.toLowerCase().includes(wanted.toLowerCase()) : !isPill)
    && found.filter((one) => one.title === title).length === 1);
  return named.slice(0, MOST_HERE).map(({ title, act }) => ({ kind: "Here", title, act }));
}
