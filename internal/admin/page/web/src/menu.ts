// A menu is a <details>: this closes it where the element itself would not.

/** wireMenu closes an open menu on Escape, on a click elsewhere, and when the focus moves on. */
export function wireMenu(menu: HTMLDetailsElement): void {
  menu.addEventListener("keydown", (e) => {
    if (e.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
  });
  menu.addEventListener("focusout", (e) => {
    if (e.relatedTarget && !menu.contains(e.relatedTarget as Node)) menu.open = false;
  });
  menu.addEventListener("toggle", () => {
    if (menu.open) menu.querySelector(".menu-items")?.scrollIntoView({ block: "nearest" });
  });
  document.addEventListener("pointerdown", (e) => {
    if (!menu.contains(e.target as Node)) menu.open = false;
  });
}
