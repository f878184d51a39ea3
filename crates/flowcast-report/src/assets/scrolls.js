// Boxes of which a part is out of sight fade where it is, and say so in words above.
function startScrolls() {
  const watch = new ResizeObserver((entries) => entries.forEach(({ target }) => markScroll(target.closest(".scroll"))));
  for (const box of document.querySelectorAll(".scroll")) {
    box.before(Object.assign(document.createElement("p"), { className: "hint", hidden: true }));
    for (const part of [box, ...box.children]) watch.observe(part);
    box.addEventListener("scroll", () => markScroll(box), { passive: true });
    markScroll(box);
  }
}

function markScroll(box) {
  const [right, below] = [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight];
  const has = (name, holds) => box.classList.toggle(name, holds);
  has("more-left", right > 1 && box.scrollLeft > 1);
  has("more-right", right - box.scrollLeft > 1);
  has("more-above", below > 1 && box.scrollTop > 1);
  has("more-below", below - box.scrollTop > 1);
  const ways = [right > 1 ? "sideways" : "", below > 1 ? "down" : ""].filter(Boolean).join(" and ");
  Object.assign(box.previousElementSibling, { hidden: !ways, textContent: `Scroll ${ways} to see all of it` });
  // A box that scrolls can be scrolled by keys.
  if (!ways) return ["tabindex", "role", "aria-label"].forEach((name) => box.removeAttribute(name));
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", `Scrolls ${ways}`);
}

startScrolls();
