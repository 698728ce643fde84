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
}
