// The pages can be read without this: it only narrows the table of tests.
const box = document.getElementById("filter");
if (box) {
  const rows = [...document.querySelectorAll("tr[data-find]")];
  const groups = [...document.querySelectorAll("section.ending")];
  const narrow = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      row.hidden = !words.every((word) => row.dataset.find.includes(word));
    }
    for (const group of groups) {
      group.hidden = !group.querySelector("tr[data-find]:not([hidden])");
    }
  };
  box.hidden = false;
  box.addEventListener("input", narrow);
  if (box.value) narrow();
}
