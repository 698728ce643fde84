// Shortcuts of every page: "/" for the question, "?" for the list of keys, Ctrl+K or Cmd+K for the finder.
function isTyping(event) {
  return event.composedPath()[0].matches?.("input, textarea, select, [contenteditable=true]") ?? false;
}

// Enter in the question moves the focus to the hits when they arrive, unless another key is pressed.
function watchEnter(event) {
  window.workbenchEntered = event.key === "Enter" && (event.composedPath()[0].closest?.(".st-key-question") ?? null) !== null;
}

function toQuestion(event) {
  const question = document.querySelector(".st-key-question input");
  if (!question) return;
  event.preventDefault();
  question.focus();
  question.select();
}

// The down arrow moves from the question to the first passage.
function toPassages(event) {
  const first = window.workbenchBoard?.isConnected ? window.workbenchBoard.querySelector(".card .title") : null;
  if (event.key !== "ArrowDown" || !first || !event.composedPath()[0].closest?.(".st-key-question")) return;
  event.preventDefault();
  first.focus();
}

// A skip link after the question moves to the first passage.
function skipToPassages(event) {
  if (!event.target.closest?.(".wb-skip")) return;
  event.preventDefault();
  window.workbenchBoard?.querySelector(".card .title")?.focus();
}

// Ctrl+Enter clicks the only primary button around the focus, or on the page or dialog, but never one that deletes.
// It waits for typed text to be sent, which may enable the button.
const CHIEF = '[data-testid^="stBaseButton-primary"]', DELETES = '[class*="st-key-confirm_delete"], [class*="st-key-confirm_drop"], [class*="st-key-confirm_forget"]';
const SOON = 40, PAUSE = 50;  // attempts while the button is disabled, and ms between them

function chiefPlace() {
  const dialogs = document.querySelectorAll("[role=dialog]");
  return dialogs[dialogs.length - 1] ?? document.querySelector("[data-testid=stMain]");
}

function chiefButton(place) {
  const focus = document.activeElement;
  for (let around = place?.contains(focus) ? focus : place; around && place.contains(around); around = around.parentElement) {
    const found = [...around.querySelectorAll(CHIEF)].filter((button) => button.checkVisibility() && !button.closest(DELETES));
    if (found.length) return found.length === 1 ? found[0] : null;
  }
  return null;
}

function pressChief(event, root) {
  if (root.querySelector("dialog[open]")) return;  // the list of keys or the finder
  const place = chiefPlace(), chief = chiefButton(place);
  if (!chief) return;
  event.preventDefault();
  event.stopPropagation();
  chief.focus();
  if (document.activeElement !== chief) document.activeElement.blur();
  const press = (looks) => {
    if (chiefPlace() !== place) return;  // its dialog was closed
    const button = chiefButton(place);
    if (button && !button.disabled) button.click();
    else if (looks) setTimeout(press, PAUSE, looks - 1);
  };
  press(SOON);
}

function isSubmitting(event) {
  const isLink = event.composedPath()[0].closest?.("a[href]");  // the browser opens it in a new tab
  return (event.ctrlKey || event.metaKey) && !event.altKey && !event.repeat && event.key === "Enter" && !isLink;
}

function isFinding(event) {
  return (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k";
}

function onKey(event) {
  watchEnter(event);
  toPassages(event);
  const { keys, palette, root } = window.workbenchDialogs;
  if (isFinding(event)) {
    event.preventDefault();
    if (!event.repeat && !root.querySelector("dialog[open]")) palette.open();
  } else if (isSubmitting(event)) pressChief(event, root);
  else if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
  else if (event.key === "/") toQuestion(event);
  else if (event.key === "?") keys.showModal();
}

export default function (component) {
  const root = component.parentElement.querySelector(".root");
  if (!root.dialogs) root.dialogs = { root, keys: keysDialog(root), palette: paletteDialog(root) };
  const tell = (scheme) => component.setTriggerValue("theme", scheme);
  window.workbenchTheme = { ...window.workbenchTheme, drawn: component.data.theme, tell };
  window.workbenchTheme.follow?.();
  window.workbenchDialogs = root.dialogs;  // each page has its own root
  if (window.workbenchShortcuts) return;
  window.workbenchShortcuts = true;
  sameThemeEverywhere();
  closeDrawerOnChoice();
  roomForTray();
  ownWordsForLostServer();
  document.addEventListener("click", skipToPassages);
  document.addEventListener("keydown", onKey, true);
}
