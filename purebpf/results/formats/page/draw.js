// A tree on a canvas: boxes as wide as their weight, a row for each depth.

const ROW = 18;
const NARROWEST = 0.5; // pixels; what is narrower is not drawn, and its children are not made
const TEXT_FROM = 30;

const HUES = { kernel: 24, user: 48, inlined: 190, jit: 220, python: 120, process: 170 };
const PALE = { process: 30 }; // percent of saturation; what a search found is purple

function hash(text) {
  let found = 2166136261;
  for (let i = 0; i < text.length; i++) found = Math.imul(found ^ text.charCodeAt(i), 16777619);
  return (found >>> 0) / 4294967296;
}

class Graph {
  // `upwards`: the root is at the bottom (callers of a sandwich).
  constructor(canvas, { upwards = false } = {}) {
    this.canvas = canvas;
    this.upwards = upwards;
    this.rows = [];
    this.root = null;
    this.focus = null;
    this.selected = null;
    this.colours = new Map();
  }

  show(root, focus = root) {
    this.root = root;
    this.focus = focus;
    this.selected = null;
  }

  // style: { by, dark, matched, scale, name(frame), function(frame) }
  draw(style) {
    this.style = style;
    const width = this.canvas.clientWidth;
    this.place(width);
    const height = Math.max(1, this.rows.length) * ROW + 1;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext("2d", { alpha: false });
    context.scale(ratio, ratio);
    context.fillStyle = style.dark ? "#16181d" : "#ffffff";
    context.fillRect(0, 0, width, height);
    context.font = "12px ui-monospace, Menlo, Consolas, monospace";
    context.textBaseline = "middle";
    const letter = context.measureText("m").width;
    this.rows.forEach((boxes, row) => {
      for (const box of boxes) this.paint(context, box, this.top(row), letter);
    });
  }

  top(row) {
    return (this.upwards ? this.rows.length - 1 - row : row) * ROW;
  }

  // Boxes by row: the ancestors of what is in focus as wide as the canvas, then its subtree.
  place(width) {
    this.rows = [];
    if (!this.root || !this.focus.weight && !this.focus.before) return;
    for (const branch of this.focus.ancestry()) {
      this.rows.unshift([{ branch, left: 0, width, above: branch !== this.focus }]);
    }
    let row = this.rows[this.rows.length - 1];
    const whole = this.style.size(this.focus);
    while (row.length) {
      const next = [];
      for (const box of row) {
        let left = box.left;
        for (const branch of box.branch.children) {
          const wide = (this.style.size(branch) / whole) * width;
          if (wide >= NARROWEST) next.push({ branch, left, width: wide });
          left += wide;
        }
      }
      if (next.length) this.rows.push(next);
      row = next;
    }
  }

  paint(context, box, top, letter) {
    const { branch, left } = box;
    const width = Math.max(box.width - (box.width > 3 ? 0.5 : 0), 0.5);
    context.globalAlpha = box.above ? 0.6 : 1;
    context.fillStyle = this.colour(branch);
    context.fillRect(left, top, width, ROW - 1);
    if (branch === this.selected) {
      context.strokeStyle = this.style.dark ? "#ffffff" : "#000000";
      context.lineWidth = 2;
      context.strokeRect(left + 1, top + 1, Math.max(width - 2, 1), ROW - 3);
    }
    const room = Math.floor((width - 6) / letter);
    if (box.width < TEXT_FROM || room < 2) return;
    const text = this.style.name(branch.frame);
    context.fillStyle = this.style.dark ? "#f2f2f2" : "#111111";
    context.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, left + 3, top + 9);
    context.globalAlpha = 1;
  }

  colour(branch) {
    const { style } = this;
    if (branch.frame < 0) return style.dark ? "#3a3f4b" : "#d5d8de";
    if (style.matched?.[branch.frame]) return style.dark ? "#a33ea1" : "#e87be6";
    if (style.change) return changeColour(style.change(branch), style.dark);
    const key = branch.frame;
    let found = this.colours.get(key);
    if (!found) this.colours.set(key, (found = functionColour(style.function(key), style)));
    return found;
  }

  // The box at a place, or undefined.
  at(x, y) {
    const level = Math.floor(y / ROW);
    const boxes = this.rows[this.upwards ? this.rows.length - 1 - level : level] ?? [];
    let low = 0;
    let high = boxes.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const box = boxes[middle];
      if (x < box.left) high = middle - 1;
      else if (x >= box.left + box.width) low = middle + 1;
      else return box;
    }
    return undefined;
  }
}

function functionColour(found, { by, dark }) {
  if (found.kind === "unknown") return dark ? "#565b66" : "#b9bec8";
  const hue = by === "module" ? hash(found.module || found.kind) * 360 : HUES[found.kind] ?? 48;
  const light = (dark ? 30 : 66) + hash(found.name) * (dark ? 10 : 14);
  const saturation = PALE[found.kind] ?? (dark ? 55 : 78);
  return `hsl(${Math.round(hue)} ${saturation}% ${light.toFixed(1)}%)`;
}

// Red where it grew, blue where it shrank; `change` is -1 to 1.
function changeColour(change, dark) {
  const strength = Math.min(1, Math.sqrt(Math.abs(change)));
  const light = dark ? 28 + 16 * strength : 92 - 34 * strength;
  return `hsl(${change > 0 ? 4 : 214} ${Math.round(85 * strength)}% ${light.toFixed(1)}%)`;
}
