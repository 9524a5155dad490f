"use strict";
// Drag over the time line: what it covers becomes the range, and the form is sent.
const box = document.getElementById("time");
if (box) {
  const svg = box.querySelector("svg");
  const { start, step, steps } = Object.fromEntries(Object.entries(box.dataset).map(([name, value]) => [name, Number(value)]));
  const picked = document.getElementById("picked");
  const form = document.querySelector("form");
  const MINUTE = 60;
  let from = null;

  const part = (event) => {
    const area = svg.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - area.left) / area.width));
  };
  const iso = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16);

  function show(to) {
    const [left, right] = [Math.min(from, to), Math.max(from, to)];
    picked.setAttribute("x", left * 1000);
    picked.setAttribute("width", Math.max(1, (right - left) * 1000));
    picked.removeAttribute("visibility");
  }

  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    from = part(event);
    svg.setPointerCapture(event.pointerId);
    show(from);
  });
  svg.addEventListener("pointermove", (event) => { if (from !== null) show(part(event)); });
  svg.addEventListener("pointercancel", () => { from = null; picked.setAttribute("visibility", "hidden"); });
  svg.addEventListener("pointerup", (event) => {
    if (from === null) return;
    let [left, right] = [from, part(event)].sort((a, b) => a - b);
    from = null;
    if (right - left < 0.004) { // a click: the column below it
      left = Math.floor(Math.min(left, 0.9999) * steps) / steps;
      right = left + 1 / steps;
    }
    const whole = step * steps;
    const since = Math.floor((start + left * whole) / MINUTE) * MINUTE;
    const until = Math.max(since + MINUTE, Math.ceil((start + right * whole - 0.001) / MINUTE) * MINUTE);
    form.elements.since.value = iso(since);
    form.elements.until.value = iso(until);
    form.requestSubmit();
  });
}
