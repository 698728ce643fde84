// Roving tabindex: a group of controls is one Tab stop, and arrow keys move within it.
const BETWEEN = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

// Make the last visited control of a group, or the first, its Tab stop.
function oneStop(rows) {
  const every = rows.flat(), at = every.find((control) => control.getAttribute("tabindex") === "0") ?? every[0];
  every.forEach((control) => control.setAttribute("tabindex", control === at ? "0" : "-1"));
}

// Move from a control by an arrow key; return the new control, or undefined at the edge of the group.
function goOn(rows, from, key) {
  const row = rows.findIndex((controls) => controls.includes(from));
  if (row < 0 || !(key in BETWEEN)) return undefined;
  const [down, right] = BETWEEN[key], place = rows[row].indexOf(from);
  const to = down ? rows[row + down]?.[Math.min(place, rows[row + down].length - 1)] : rows[row][place + right];
  if (!to) return undefined;
  from.setAttribute("tabindex", "-1");
  to.setAttribute("tabindex", "0");
  to.focus();
  return to;
}
