// Charts are coloured by the server, which draws the page anew for another theme; that would close a dialog.
const CHART = '[data-testid="stEChartsChart"], [data-testid="stVegaLiteChart"]', DIALOG = '[role="dialog"]';
const hasOpenCharts = () => document.querySelector(CHART) && !document.querySelector(DIALOG);

// Dialogs and popovers hang on the body, outside the element that says which theme is shown: say it for all of them.
function sameThemeEverywhere() {
  const app = document.querySelector('[data-testid="stApp"]');
  if (!app) return;
  const say = () => {
    const scheme = getComputedStyle(app).colorScheme, before = document.documentElement.style.colorScheme;
    document.documentElement.style.colorScheme = scheme;
    if (before && before !== scheme && hasOpenCharts()) window.workbenchTellTheme(scheme);
  };
  say();
  new MutationObserver(say).observe(app, { attributes: true, attributeFilter: ["class"] });
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
