// The bars with the button to copy are landmarks, and each needs a name of its own.
function nameBars() {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((bar) => {
    bar.setAttribute("aria-label", `Block ${document.querySelectorAll(".md-code__nav[aria-label]").length + 1}`);
  });
}
new MutationObserver(nameBars).observe(document.documentElement, { childList: true, subtree: true });
