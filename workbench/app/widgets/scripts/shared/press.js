// A click is lost if its element is replaced between pointer down and up, so a redraw waits until the press has ended.
// Of several waiting redraws, the last is drawn.
const PRESS_ENDS = ["pointerup", "pointercancel", "pointermove", "dragend", "blur"];

function afterPress(root, redraw) {
  if (!root.press) watchPress(root, (root.press = { held: false, waiting: null }));
  root.press.waiting = redraw;
  drawWaiting(root.press);
}

function drawWaiting(press) {
  if (press.held || !press.waiting) return;
  const redraw = press.waiting;
  press.waiting = null;
  redraw();
}

function watchPress(root, press) {
  root.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest("select")) return;  // the list of a select consumes the release
    const listening = new AbortController();
    press.held = true;
    const end = (ending) => {
      if (ending.type === "pointermove" && ending.buttons) return;  // a missed release is detected by the next move
      if (ending.type === "blur" && ending.target !== window) return;  // the press moved the focus out of a field
      listening.abort();
      setTimeout(() => {  // the click follows the release in the same task
        press.held = false;
        drawWaiting(press);
      });
    };
    for (const name of PRESS_ENDS) window.addEventListener(name, end, { capture: true, signal: listening.signal });
  }, true);
}
