// The badge of the live strategy, and the buttons that promote another one.
function paintServing(root) {
  const { serving, columns } = root.data;
  if (!serving) return;
  root.querySelectorAll(".serving").forEach((holder, place) => {
    const column = columns[place], serves = serving.columns.includes(column.name);
    const state = serves ? serving.badge : serving.reason;
    if (holder.dataset.state === state) return;
    holder.dataset.state = state;
    holder.replaceChildren(serves
      ? make("span", { class: "badge", title: "Used by searches in this scope that name no strategy" }, serving.badge)
      : make("button", { type: "button", class: "promote", disabled: Boolean(serving.reason), title: serving.reason || `Use ${column.title} for searches in this scope that name no strategy` },
        "Promote", spoken(` ${column.title}`)));
  });
  oneStop([promotions(root)]);
}

function promotions(root) {
  return [...root.querySelectorAll(".promote:not(:disabled)")];
}

// Arrow keys move between the Promote buttons, and down to the passages.
function moveFromPromotion(root, event) {
  const from = event.target.closest(".promote");
  if (!from) return;
  const column = root.querySelectorAll(".grid > .column")[[...root.querySelectorAll(".head")].indexOf(from.closest(".head"))];
  const below = event.key === "ArrowDown" ? column?.querySelector(".card .title") : null;
  if (below) focusOn(root, below);
  if (below || goOn([promotions(root)], from, event.key)) event.preventDefault();
}

// The up arrow moves from the first passage of a column to its Promote button.
function goToPromotion(root, item, key) {
  const place = [...root.querySelectorAll(".grid > .column")].indexOf(item.closest(".column"));
  if (key === "ArrowUp") root.querySelectorAll(".head")[place]?.querySelector(".promote:not(:disabled)")?.focus();
}
