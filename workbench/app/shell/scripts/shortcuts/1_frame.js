// The server colours charts and redraws the page for another theme. That would close a dialog, so it waits until the
// dialog is closed. The theme may change while a page is loading, so the drawn theme is compared, not the last change.
const CHART = '[data-testid="stEChartsChart"], [data-testid="stVegaLiteChart"]', DIALOG = '[role="dialog"]';
function followingCharts() {
  let asked = "";
  return () => {
    const shown = document.documentElement.style.colorScheme, { drawn, tell } = window.workbenchTheme;
    if (shown === drawn) asked = "";
    else if (shown !== asked && document.querySelector(CHART) && !document.querySelector(DIALOG)) {
      asked = shown;
      tell(shown);
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
  let tray = null;
  const look = () => {
    const now = document.querySelector(".st-key-tray");
    if (now === tray) return;
    if (tray) say.unobserve(tray);
    tray = now;
    if (tray) say.observe(tray);
  };
  look();
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}

// Streamlit's dialog for a lost server names its own command and the internet, which does not help here. The style sheet
// hides its texts, and these replace them. It closes itself when the server is back.
const SERVER_LOST = /Streamlit still running|Streamlit server is not responding|Cannot connect to Streamlit/;
function ownWordsForLostServer() {
  const look = () => {
    for (const dialog of document.querySelectorAll('[role="dialog"]')) {
      const lost = SERVER_LOST.test(dialog.textContent);
      if (lost && !dialog.querySelector(".wb-lost")) {
        dialog.prepend(make("div", { class: "wb-lost", role: "alert" }, make("h2", {}, "Connection lost"),
          make("p", {}, "The server has stopped or is unreachable. Start it again, for example with:"),
          make("code", {}, "workbench app"),
          make("p", {}, "This page reconnects automatically. Saved changes are kept; unsaved text is lost if you close or reload the page.")));
        dialog.classList.add("wb-server-lost");
      }
    }
  };
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
