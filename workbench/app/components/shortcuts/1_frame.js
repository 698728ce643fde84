// Dialogs and popovers hang on the body, outside the element that says which theme is shown: say it for all of them.
function sameThemeEverywhere() {
  const app = document.querySelector('[data-testid="stApp"]');
  if (!app) return;
  const say = () => { document.documentElement.style.colorScheme = getComputedStyle(app).colorScheme; };
  say();
  new MutationObserver(say).observe(app, { attributes: true, attributeFilter: ["class"] });
}

// On a phone the pages are listed in a drawer that covers them: choosing one closes it.
function closeDrawerOnChoice() {
  document.addEventListener("click", (event) => {
    const chosen = event.target.closest?.('[data-testid="stSidebarNavLink"]');
    if (chosen) setTimeout(() => document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click());
  });
}
