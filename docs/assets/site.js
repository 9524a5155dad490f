// Buttons beside code have names of their own, and code that scrolls can be reached by the keyboard.
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
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
  });
}
window.addEventListener("load", completePage);
window.addEventListener("resize", completePage);
