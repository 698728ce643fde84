// Charts are coloured by the server, which draws the page anew for another theme; that would close a dialog, so it waits
// for its end. A theme may change at any time, also while a page is on its way: what counts is what it was drawn in.
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

// Dialogs and popovers hang on the body, outside the element that says which theme is shown: say it for all of them.
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

// The tray of long work stands below the page, which ends above it, however many lines it has.
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

// Streamlit's dialog for a server that does not answer names its own command and the internet, neither of which helps
// here. Its texts are hidden by the stylesheet and ours are put in front of them; it closes itself once the server is back.
const SERVER_LOST = /Streamlit still running|Streamlit server is not responding|Cannot connect to Streamlit/;
function ownWordsForLostServer() {
  const look = () => {
    for (const dialog of document.querySelectorAll('[role="dialog"]')) {
      const lost = SERVER_LOST.test(dialog.textContent);
      if (lost && !dialog.querySelector(".wb-lost")) {
        dialog.prepend(make("div", { class: "wb-lost", role: "alert" }, make("h2", {}, "The workbench does not answer"),
          make("p", {}, "Its server has stopped or cannot be reached. Start it again with the command that started it, for example:"),
          make("code", {}, "workbench app"),
          make("p", {}, "This page connects again by itself once it answers. What was saved is kept; text that you are typing is lost if you close or reload the page.")));
        dialog.classList.add("wb-server-lost");
      }
    }
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
}

// On a phone the pages are listed in a drawer that covers them: choosing one closes it. The new page may open it anew
// while it is drawn, so it is looked at for a second; a page chosen before this script came has the focus still.
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
