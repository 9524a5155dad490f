// Code and tables that scroll can be reached by the keyboard: also in another tab, in a narrower window, and
// where the theme takes the focus from code because the device has no pointer that hovers.
function reach(changes) {
  for (const { target } of changes) {
    if (target.scrollWidth > target.clientWidth && target.tabIndex < 0) target.tabIndex = 0;
  }
}
const sizes = new ResizeObserver(reach);
const focus = new MutationObserver(reach);
// Buttons beside code have names of their own.
function completePage() {
  document.querySelectorAll(".md-code__nav").forEach((buttons, number) => {
    buttons.setAttribute("aria-label", `Code block ${number + 1}`);
  });
  // parts of a table of contents are no landmarks: two may have the same name
  document.querySelectorAll(".md-nav--secondary .md-nav").forEach((part) => {
    part.setAttribute("role", "none");
    part.removeAttribute("aria-label");
  });
  document.querySelectorAll("pre > code, .md-typeset__scrollwrap").forEach((part) => {
    sizes.observe(part);
    focus.observe(part, { attributeFilter: ["tabindex"] });
  });
}
window.addEventListener("load", completePage);
