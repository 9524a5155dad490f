// A tree on a canvas: boxes as wide as their weight, a row for each depth.

const ROW = 19;
const NARROWEST = 0.5; // pixels; what is narrower is not drawn, and its children are not made
const TEXT_FROM = 28;
const FONT = "12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";

const HUES = { kernel: 22, user: 46, inlined: 190, jit: 220, python: 120, process: 172, thread: 172 };
const PALE = { process: 26, thread: 18, python: 46 }; // percent of saturation; what a search found is purple
const STATE_COLOURS = { // hue, saturation and lightness by light and dark
  running: [128, 46, 62, 34],
  "run queue": [32, 92, 64, 42],
  sleeping: [212, 52, 74, 36],
  "Python's GIL": [50, 85, 64, 40],
  blocked: [2, 74, 68, 42],
  idle: [220, 8, 82, 30],
  stopped: [280, 40, 74, 38],
  unknown: [0, 0, 70, 44],
};

function hash(text) {
  let found = 2166136261;
  for (let i = 0; i < text.length; i++) found = Math.imul(found ^ text.charCodeAt(i), 16777619);
  return (found >>> 0) / 4294967296;
}

class Graph {
  // `upwards`: the root is at the bottom, as in the first flame graphs.
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

  // style: { by, dark, matched, size(branch), change(branch), name(frame), function(frame) }
  draw(style) {
    this.style = style;
    const width = this.canvas.clientWidth;
    this.place(width);
    const ratio = window.devicePixelRatio || 1;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    const context = this.canvas.getContext("2d", { alpha: false });
    context.scale(ratio, ratio);
    this.paintOn(context, width);
  }

  get height() {
    return Math.max(1, this.rows.length) * ROW + 1;
  }

  paintOn(context, width) {
    context.fillStyle = this.background;
    context.fillRect(0, 0, width, this.height);
    context.font = FONT;
    context.textBaseline = "middle";
    const letter = context.measureText("m").width;
    this.rows.forEach((boxes, row) => {
      for (const box of boxes) this.paint(context, box, this.top(row), letter);
    });
    context.globalAlpha = 1;
  }

  get background() {
    return this.style.dark ? "#16181d" : "#ffffff";
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
    const width = Box.drawn(box);
    context.globalAlpha = this.strength(box);
    context.fillStyle = this.colour(branch);
    context.fillRect(left, top, width, ROW - 1);
    if (this.style.by === "state") this.paintStates(context, branch, left, top, width);
    if (branch === this.selected) {
      context.globalAlpha = 1;
      context.strokeStyle = this.style.dark ? "#ffffff" : "#000000";
      context.lineWidth = 2;
      context.strokeRect(left + 1, top + 1, Math.max(width - 2, 1), ROW - 3);
    }
    const text = this.caption(box, letter);
    if (!text) return;
    context.fillStyle = this.style.dark ? "#f2f2f2" : "#111111";
    context.fillText(text, left + 4, top + ROW / 2);
  }

  // What the box is drawn with, 0 to 1: what a search did not find is faint.
  strength({ branch, above }) {
    const { matched } = this.style;
    if (matched && branch.frame >= 0 && !matched[branch.frame]) return 0.3;
    return above ? 0.6 : 1;
  }

  caption({ branch, width }, letter) {
    const room = Math.floor((width - 7) / letter);
    if (width < TEXT_FROM || room < 2) return "";
    const text = this.style.name(branch.frame);
    return text.length > room ? `${text.slice(0, room - 1)}…` : text;
  }

  // A stripe along the bottom with the share of each state, where there are several.
  paintStates(context, branch, left, top, width) {
    const parts = this.statesOf(branch);
    if (parts.length < 2 || width < 4) return;
    const whole = parts.reduce((sum, [, weight]) => sum + weight, 0);
    let at = left;
    for (const [state, weight] of parts) {
      const wide = (weight / whole) * width;
      context.fillStyle = stateColour(state, this.style.dark);
      context.fillRect(at, top + ROW - 4, wide, 3);
      at += wide;
    }
  }

  // [state, weight] of a branch, the heaviest first.
  statesOf(branch) {
    branch.shares ??= [...(branch.states ?? [])]
      .map((weight, i) => [STATES[i], weight])
      .filter(([, weight]) => weight > 0)
      .sort((a, b) => b[1] - a[1]);
    return branch.shares;
  }

  colour(branch) {
    const { style } = this;
    if (branch.frame < 0) return style.dark ? "#3a3f4b" : "#d5d8de";
    if (style.matched?.[branch.frame]) return style.dark ? "#a33ea1" : "#e87be6";
    if (style.change) return changeColour(style.change(branch), style.dark);
    if (style.by === "state" && branch.states) {
      const shade = 6 * hash(style.name(branch.frame)) - 3; // so that neighbours are told apart
      return stateColour(this.statesOf(branch)[0]?.[0] ?? "unknown", style.dark, shade);
    }
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

  // Where a branch is drawn: { box, top }, or undefined.
  find(branch) {
    for (const [row, boxes] of this.rows.entries()) {
      const box = boxes.find((candidate) => candidate.branch === branch);
      if (box) return { box, top: this.top(row) };
    }
    return undefined;
  }
}

const Box = {
  // As wide as it is painted: a gap to the next one where there is room.
  drawn: ({ width }) => Math.max(width - (width > 3 ? 0.5 : 0), 0.5),
};

function functionColour({ name, module, kind }, { by, dark }) {
  if (kind === "unknown" || kind === "divider" || kind === "cut") return dark ? "#565b66" : "#b9bec8";
  const hue = by === "module" ? hash(module || kind) * 360 : HUES[kind] ?? 48;
  const light = (dark ? 30 : 66) + hash(name) * (dark ? 10 : 14);
  const saturation = PALE[kind] ?? (dark ? 55 : 78);
  return `hsl(${Math.round(hue)} ${saturation}% ${light.toFixed(1)}%)`;
}

function stateColour(state, dark, shade = 0) {
  const [hue, saturation, light, lightInDark] = STATE_COLOURS[state];
  return `hsl(${hue} ${saturation}% ${((dark ? lightInDark : light) + shade).toFixed(1)}%)`;
}

// Red where it grew, blue where it shrank; `change` is -1 to 1.
function changeColour(change, dark) {
  const strength = Math.min(1, Math.sqrt(Math.abs(change)));
  const light = dark ? 28 + 16 * strength : 92 - 34 * strength;
  return `hsl(${change > 0 ? 4 : 214} ${Math.round(85 * strength)}% ${light.toFixed(1)}%)`;
}
