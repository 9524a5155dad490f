// A menu at a place, by pointer or by keyboard.

class Menu {
  constructor(element) {
    this.element = element;
    this.before = null;
    element.addEventListener("keydown", (event) => this.key(event));
    element.addEventListener("focusout", (event) => {
      if (!element.contains(event.relatedTarget)) this.close();
    });
    document.addEventListener("pointerdown", (event) => {
      if (!element.contains(event.target)) this.close();
    });
    document.addEventListener("scroll", () => this.close(), true);
  }

  // entries: [text, act]; where `act` is missing, a line between.
  open(x, y, entries) {
    this.before = document.activeElement;
    this.element.replaceChildren(...entries.map(([text, act]) => {
      if (!act) return document.createElement("hr");
      const button = document.createElement("button");
      button.setAttribute("role", "menuitem");
      button.textContent = text;
      button.addEventListener("click", () => {
        this.close();
        act();
      });
      return button;
    }));
    this.element.hidden = false;
    const { width, height } = this.element.getBoundingClientRect();
    this.element.style.left = `${Math.max(0, Math.min(x, innerWidth - width - 4))}px`;
    this.element.style.top = `${Math.max(0, Math.min(y, innerHeight - height - 4))}px`;
    this.element.querySelector("button").focus();
  }

  close() {
    if (this.element.hidden) return;
    this.element.hidden = true;
    this.before?.focus?.({ preventScroll: true });
  }

  key(event) {
    const buttons = [...this.element.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    const to = {
      ArrowDown: at + 1, ArrowUp: at - 1 + buttons.length, Home: 0, End: buttons.length - 1,
    }[event.key];
    if (to !== undefined) buttons[to % buttons.length].focus();
    else if (event.key === "Escape" || event.key === "Tab") this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
