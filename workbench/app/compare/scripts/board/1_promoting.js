// The column that serves searches in the scope, and the button that lets another one serve.
function paintServing(root) {
  const { serving, columns } = root.data;
  if (!serving) return;
  root.querySelectorAll(".serving").forEach((holder, place) => {
    const column = columns[place], serves = serving.columns.includes(column.name);
    const state = serves ? "serves" : serving.reason;
    if (holder.dataset.state === state) return;
    holder.dataset.state = state;
    holder.replaceChildren(serves
      ? make("span", { class: "badge", title: "Searches here that name no strategy use this one" }, "serves")
      : make("button", { type: "button", class: "promote", disabled: Boolean(serving.reason), title: serving.reason || `Let ${column.title} serve searches here that name no strategy` },
        "Promote", spoken(` ${column.title}`)));
  });
  oneStop([promotions(root)]);
}

function promotions(root) {
  return [...root.querySelectorAll(".promote:not(:disabled)")];
}

// The arrows lead from a Promote to that of another column, and down to its passages.
function moveFromPromotion(root, event) {
  const from = event.target.closest(".promote");
  if (!from) return;
  const column = root.querySelectorAll(".grid > .column")[[...root.querySelectorAll(".head")].indexOf(from.closest(".head"))];
  const below = event.key === "ArrowDown" ? column?.querySelector(".card .title") : null;
  if (below) focusOn(root, below);
  if (below || goOn([promotions(root)], from, event.key)) event.preventDefault();
}

// Up from the first passage of a column to the button over it.
function goToPromotion(root, item, key) {
  const place = [...root.querySelectorAll(".grid > .column")].indexOf(item.closest(".column"));
  if (key === "ArrowUp") root.querySelectorAll(".head")[place]?.querySelector(".promote:not(:disabled)")?.focus();
}
