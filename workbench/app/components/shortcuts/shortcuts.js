// "/" puts the cursor into the question, from anywhere but another field.
export default function () {
  if (window.workbenchShortcuts) return;
  window.workbenchShortcuts = true;
  sameThemeEverywhere();
  closeDrawerOnChoice();
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.composedPath()[0];
    if (at.matches?.("input, textarea, select, [contenteditable=true]")) return;
    const question = document.querySelector(".st-key-question input");
    if (!question) return;
    event.preventDefault();
    question.focus();
    question.select();
  });
}
