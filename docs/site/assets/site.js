// What the theme leaves out for screen readers and keyboards. It adds parts of a page late, so changes are watched.
const observer = new MutationObserver(complete);

function complete() {
  observer.disconnect();
  const used = new Map();
  document.querySelectorAll("nav").forEach((nav) => {
    const own = nav.dataset.name ?? nameOf(nav);
    nav.dataset.name = own;
    const count = (used.get(own) ?? 0) + 1;
    used.set(own, count);
    if (count > 1 || !nav.hasAttribute("aria-labelledby")) nav.setAttribute("aria-label", count > 1 ? `${own} ${count}` : own);
    if (count > 1) nav.removeAttribute("aria-labelledby");
  });
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((wide) => (wide.tabIndex = 0));
  // An empty corner of a table heads nothing.
  document.querySelectorAll("th:empty").forEach((corner) => corner.replaceWith(document.createElement("td")));
  observer.observe(document.documentElement, { childList: true, subtree: true });
}

// Landmarks need names, and each its own.
function nameOf(nav) {
  const label = document.getElementById(nav.getAttribute("aria-labelledby"));
  return label?.textContent.trim().replace(/\s+/g, " ") || nav.getAttribute("aria-label") || "Code";
}

complete();
