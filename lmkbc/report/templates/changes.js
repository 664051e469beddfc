"use strict";
// Filters of the tables of rows won and lost, which are in the document already: rows are hidden and shown.
document.querySelectorAll("form[data-rows]").forEach((form) => {
  const rows = [...document.getElementById(form.dataset.rows).tBodies[0].rows];
  const status = form.querySelector("[role=status]");
  const filter = () => {
    const relation = form.elements.namedItem("relation").value, side = form.elements.namedItem("side").value;
    let count = 0;
    rows.forEach((row) => {
      row.hidden = (relation !== "" && row.dataset.relation !== relation) || (side !== "" && row.dataset.side !== side);
      count += !row.hidden;
    });
    status.textContent = `${count} of ${rows.length} rows`;
  };
  form.addEventListener("change", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
});
