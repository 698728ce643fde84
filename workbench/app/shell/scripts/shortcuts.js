import { make } from "../../widgets/scripts/shared.js";

// The server colours charts and redraws the page for another theme. That would close a dialog, so it waits until the
// dialog is closed. The theme may change while a page is loading, so the drawn theme is compared, not the last change.
const CHART = '[data-testid="stEChartsChart"], [data-testid="stVegaLiteChart"]', DIALOG = '[role="dialog"]';
function followingCharts() {
  let asked = "";
  return () => {
    const shown = document.documentElement.style.colorScheme, { drawn, send } = window.workbenchTheme;
    if (shown === drawn) asked = "";
    else if (shown !== asked && document.querySelector(CHART) && !document.querySelector(DIALOG)) {
      asked = shown;
      send(shown);
    }
  };
}

// Dialogs and popovers are outside the element that has the theme, so it is set on the root element as well.
function sameThemeEverywhere() {
  const app = document.querySelector('[data-testid="stApp"]');
  if (!app) return;
  const follow = window.workbenchTheme.follow = followingCharts();
  const say = () => {
    document.documentElement.style.colorScheme = getComputedStyle(app).colorScheme;
    follow();
  };
  say();
  new MutationObserver(say).observe(app, { attributes: true, attributeFilter: ["class"] });
  new MutationObserver(follow).observe(document.body, { childList: true, subtree: true });
}

// Reserve room for the tray of running jobs below the page.
function roomForTray() {
  const say = new ResizeObserver(([entry]) => {
    document.documentElement.style.setProperty("--wb-tray", `${Math.ceil(entry.target.isConnected ? entry.borderBoxSize[0].blockSize : 0)}px`);
  });
  const look = () => {
    const tray = document.querySelector(".st-key-tray");
    if (tray) say.observe(tray);
  };
  look();
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}

// Streamlit's dialog for a lost server names its own command and the internet, which does not help here. The style sheet
// hides its texts, and these replace them. It closes itself when the server is back. Its toasts have no names either.
const SERVER_LOST = /Streamlit still running|Streamlit server is not responding|Cannot connect to Streamlit/;
function ownWordsForLostServer() {
  const look = () => {
    for (const dialog of document.querySelectorAll('[role="dialog"]')) {
      const lost = SERVER_LOST.test(dialog.textContent);
      if (lost && !dialog.querySelector(".wb-lost")) {
        dialog.prepend(make("div", { class: "wb-lost", role: "alert" }, make("h2", {}, "Connection lost"),
          make("p", {}, "The server has stopped or is unreachable. Start it again, for example with:"),
          make("code", {}, `workbench app${location.port && ` --port ${location.port}`}`),
          make("p", {}, "This page reconnects automatically. Saved changes are kept; unsaved text is lost if you close or reload the page.")));
        dialog.classList.add("wb-server-lost");
      }
    }
    for (const toast of document.querySelectorAll('.stToast:not([aria-label])')) toast.setAttribute("aria-label", "Notice");
    for (const zone of document.querySelectorAll('[data-testid=stFileUploaderDropzone][role=presentation]')) zone.setAttribute("role", "group");
  };
  look();
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
}

// On a phone, choosing a page closes the drawer that lists them. The new page may reopen the drawer while it loads, so it
// is checked for a second. A page chosen before this script was loaded still has the focus.
function closeDrawerOnChoice() {
  const close = (looks) => {
    const drawer = document.querySelector('[data-testid="stSidebar"][data-collapsed="false"]');
    drawer?.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click();
    if (looks) setTimeout(close, 100, looks - 1);
  };
  const isPage = (element) => element?.closest?.('[data-testid="stSidebarNavLink"]');
  document.addEventListener("click", (event) => { if (isPage(event.target)) setTimeout(close, 0, 10); });
  if (isPage(document.activeElement)) close(10);
}

// The list of all keys, shown by "?".
const KEYS = [
  ["Everywhere", [["?", "show this list"], ["Ctrl K", "find a page, control, document, source, test set, experiment or action"], ["Ctrl Enter", "click the main button of the form or dialog"], ["/", "go to the question"], ["Esc", "close a dialog or the inspector"]]],
  ["Between passages", [["↓", "go from the question to the first passage"], ["↑ ↓", "previous or next passage; up from the first to Promote"], ["← →", "same passage in the next column"], ["Enter", "open the document at this passage"], ["W", "explain its rank"]]],
  ["In tables", [["← →", "move between column headings; Enter sorts"], ["↑ ↓", "move between rows"]]],
  ["While judging", [["1", "relevant"], ["2", "partly"], ["3", "not relevant"], ["0", "clear the judgment"], ["N", "next unjudged question"], ["P", "previous question"]]],
];

function keysDialog(root) {
  const dialog = make("dialog", { class: "keys", "aria-label": "Keys" }, make("button", { type: "button", class: "close" }, "Close"), make("h2", {}, "Keys"),
    KEYS.map(([title, rows]) => make("section", {}, make("h3", {}, title), make("dl", {},
      rows.flatMap(([key, what]) => [make("dt", {}, key.split(" ").map((one) => make("kbd", {}, one))), make("dd", {}, what)])))));
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  closeOnBackdrop(dialog);
  root.append(dialog);
  return dialog;
}

function closeOnBackdrop(dialog) {
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
}

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

// Ctrl+K or Cmd+K: search pages and controls of this page, and everything the server finds by name.
const FOLLOWING = ["kind", "project", "folder", "tag", "source", "language", "since", "until", "index"];
const WAIT = 120;  // ms after the last key

function pagesNow(wanted) {
  const links = [...document.querySelectorAll('[data-testid="stTopNavLink"], [data-testid="stSidebarNavLink"]')];
  const named = links.map((link) => ({ kind: "Page", title: link.textContent.trim(), link }));
  return named.filter((page, place) => page.title.toLowerCase().includes(wanted.toLowerCase())
    && named.findIndex((one) => one.title === page.title) === place);
}

// Scope and index are kept from page to page.
function addressOf(find) {
  const to = new URL(find.href, document.baseURI), here = new URLSearchParams(window.location.search);
  for (const name of FOLLOWING) {
    if (!to.searchParams.has(name)) here.getAll(name).forEach((value) => to.searchParams.append(name, value));
  }
  return to.href;
}

function go(dialog, find) {
  dialog.close();
  if (find.act) find.act();
  else if (find.link) find.link.click();
  else window.location.href = addressOf(find);
}

function choose(view, place) {
  view.at = Math.max(0, Math.min(place, view.finds.length - 1));
  view.list.querySelectorAll("[role=option]").forEach((option, number) => {
    option.setAttribute("aria-selected", String(number === view.at));
    if (number === view.at) option.scrollIntoView({ block: "nearest" });
  });
  view.box.setAttribute("aria-activedescendant", `find${view.at}`);
}

function show(view, finds) {
  view.finds = finds;
  view.list.replaceChildren(...finds.map((find, place) => {
    const option = make("li", { role: "option", id: `find${place}`, "aria-selected": "false" }, make("span", { class: "kind" }, find.kind), make("span", {}, find.title));
    option.addEventListener("click", () => go(view.dialog, find));
    option.addEventListener("mousemove", () => { if (view.at !== place) choose(view, place); });
    return option;
  }));
  choose(view, 0);
}

async function ask(view) {
  const wanted = view.box.value.trim(), number = (view.asked = (view.asked ?? 0) + 1);
  const pages = pagesNow(wanted), here = controlsNow(wanted);
  let finds = [];
  try {
    const answer = await fetch(new URL(`find?q=${encodeURIComponent(wanted)}`, document.baseURI));
    finds = answer.ok ? await answer.json() : [];
  } catch {
    finds = [];  // the server is down; the pages are still listed
  }
  if (number === view.asked) show(view, wanted ? [...here, ...pages, ...finds] : [...pages, ...here, ...finds]);
}

// Enter applies to the current text, not to the previous list.
async function enter(view) {
  if (view.timer) {
    clearTimeout(view.timer);
    view.timer = 0;
    view.asking = ask(view);
  }
  await view.asking;
  if (view.dialog.open && view.finds[view.at]) go(view.dialog, view.finds[view.at]);
}

function paletteDialog(root) {
  const box = make("input", { type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "finds", "aria-label": "Find", placeholder: "Find a page, control, document, source, test set, experiment or action", autocomplete: "off", spellcheck: "false" });
  const list = make("ul", { id: "finds", role: "listbox", "aria-label": "Results" });
  const dialog = make("dialog", { class: "palette", "aria-label": "Find" }, box, list);
  const view = { dialog, box, list, finds: [], at: 0, timer: 0, asking: null };
  box.addEventListener("input", () => {
    clearTimeout(view.timer);
    view.timer = setTimeout(() => { view.timer = 0; view.asking = ask(view); }, WAIT);
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) choose(view, view.at + step);
    else if (event.key === "Enter") enter(view);
    else return;
    event.preventDefault();
  });
  closeOnBackdrop(dialog);
  root.append(dialog);
  return { open() { box.value = ""; dialog.showModal(); view.asking = ask(view); } };
}

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

// The button of the scope bar opens the finder; the skip link after the question moves to the first passage.
function onClick(event) {
  if (event.target.closest?.(".wb-find")) window.workbenchDialogs.palette.open();
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

const COVERS = "[role=dialog], [role=listbox], [data-testid=stPopoverBody]";  // what Escape closes first
function closeInspector(root) {
  if (!root.querySelector("dialog[open]") && !document.querySelector(COVERS)) document.querySelector(".st-key-inspector_close button")?.click();
}

// If the element with the focus is removed, or none has it as after loading, the focus returns to what had it before a dialog, else to the results, the empty question or the title.
function keepFocus() {
  let inside = null, before = null;
  for (const kind of ["focusin", "focusout"]) document.addEventListener(kind, (event) => {  // within a component only the latter
    [inside] = event.composedPath();
    if (!event.target.closest(COVERS)) before = inside;
  });
  const back = () => {
    if (document.activeElement !== document.body || inside?.isConnected) return;
    const next = [before, ...(window.workbenchBoard?.querySelectorAll(".card .title") ?? []), ...document.querySelectorAll(".st-key-question input:placeholder-shown"), ...document.querySelectorAll("[data-testid=stMain] :is(h1, .st-key-failed h2)")].find((one) => one?.isConnected);
    const how = { preventScroll: true, focusVisible: inside ? undefined : false };  // after loading, the keyboard has not been used
    window.workbenchEntered = !next && how;  // the board takes it when it is drawn
    if (next?.matches("h1, h2")) next.tabIndex = -1;
    next?.focus(how);
  };
  setTimeout(back, PAUSE);
  new MutationObserver(() => { if (!inside?.isConnected) setTimeout(back, PAUSE); }).observe(document.body, { childList: true, subtree: true });
}

const isFinding = (event) => (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k";

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
  else if (event.key === "Escape") closeInspector(root);
}

export default function (component) {
  const root = component.parentElement.querySelector(".root");
  if (!root.dialogs) root.dialogs = { root, keys: keysDialog(root), palette: paletteDialog(root) };
  window.workbenchTheme = { ...window.workbenchTheme, drawn: component.data.theme, send: (scheme) => component.setTriggerValue("theme", scheme) };
  window.workbenchTheme.follow?.();
  window.workbenchDialogs = root.dialogs;  // each page has its own root
  if (window.workbenchShortcuts) return;
  window.workbenchShortcuts = true;
  sameThemeEverywhere();
  closeDrawerOnChoice();
  roomForTray();
  ownWordsForLostServer();
  keepFocus();
  document.addEventListener("click", onClick);
  document.addEventListener("keydown", onKey, true);
}
