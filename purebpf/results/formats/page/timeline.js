// When the weight was spent: bars and a lane for each of the heaviest processes, or, where a slot
// is shorter than a second, a column for each second with a cell for each slot (subsecond-offset
// heat map). Dragging picks a span of slots.

const LANES = 5;
const LANE = 14;
const AXIS = 16;
const BARS = 56;
const GUTTER = 8;
const HEAT = "#d94f30";

class Timeline {
  // `onPick(span)` is called when another span was chosen, `tell(text, event)` when the pointer moves.
  constructor(canvas, onPick, tell) {
    this.canvas = canvas;
    this.span = null;
    this.from = -1;
    this.bySecond = false;
    canvas.addEventListener("pointerdown", (event) => {
      this.from = this.slotAt(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const slot = this.slotAt(event);
      if (this.from >= 0) this.mark(slot);
      tell(event.pointerType === "touch" ? "" : this.describe(slot), event);
    });
    canvas.addEventListener("pointerleave", (event) => tell("", event));
    canvas.addEventListener("pointerup", (event) => {
      this.mark(this.slotAt(event));
      this.from = -1;
      onPick(this.span);
    });
    canvas.addEventListener("pointercancel", () => (this.from = -1));
    canvas.addEventListener("keydown", (event) => {
      if (!["ArrowLeft", "ArrowRight", "Escape"].includes(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      onPick(event.key === "Escape" ? null : this.moved(event.key === "ArrowRight" ? 1 : -1, event.shiftKey));
    });
  }

  // The span, a hundredth of the time line to one side, or wider.
  moved(way, widens) {
    const { length } = this.totals;
    const step = Math.max(1, Math.round(length / 100));
    if (!this.span) return way > 0 ? [0, step] : [length - step, length];
    const [first, last] = this.span;
    if (widens) return [first, Math.max(first + step, Math.min(length, last + way * step))];
    const to = Math.max(0, Math.min(length - (last - first), first + way * step));
    return [to, to + last - first];
  }

  // What was spent in a slot, and by whom.
  describe(slot) {
    const seconds = (at) => (((at - (this.endsNow ? this.totals.length : 0)) * this.slotNs) / 1e9).toFixed(2);
    const spent = (weight) => this.rate((weight * 1e9) / this.slotNs);
    const by = this.lanes.filter(({ totals }) => totals[slot]).map(({ name, totals }) => `${name}  ${spent(totals[slot])}`);
    return [`${seconds(slot)} s to ${seconds(slot + 1)} s  ${spent(this.totals[slot])}`, ...(this.lanes.length > 1 ? by : [])].join("\n");
  }

  // How many slots a column has: those of a second, or one.
  get column() {
    return this.bySecond && this.slotNs < 1e9 ? Math.max(1, Math.round(1e9 / this.slotNs)) : 1;
  }

  mark(slot) {
    const [first, last] = [this.from, slot].sort((a, b) => a - b);
    this.span = [Math.max(0, first), Math.min(this.totals.length, last + 1)];
    this.paint();
  }

  slotAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const { column } = this;
    const columns = Math.ceil(this.totals.length / column);
    const at = Math.floor(((event.clientX - box.left) / box.width) * columns);
    const height = box.height - AXIS;
    const cell = column === 1 ? 0 : column - 1 - Math.floor(((event.clientY - box.top) / height) * column);
    const within = Math.max(0, Math.min(column - 1, cell));
    return Math.max(0, Math.min(this.totals.length - 1, at * column + within));
  }

  // weights: { all, lanes } as Model.slotTotals gives them.
  // `rate` spells what was spent in a second, `note` stands in front of it. Times count from the
  // beginning; with `endsNow`, backwards from the end.
  draw(weights, slotNs, { dark, rate, note, endsNow }) {
    Object.assign(this, { totals: weights.all, lanes: weights.lanes, slotNs, dark, rate, note, endsNow });
    this.paint();
  }

  paint() {
    const { canvas } = this;
    const lanes = this.column === 1 && this.lanes.length > 1 ? this.lanes : [];
    const height = (this.column === 1 ? BARS + lanes.length * LANE : 100) + AXIS;
    canvas.style.height = `${height}px`;
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d", { alpha: false });
    context.scale(ratio, ratio);
    context.fillStyle = this.dark ? "#20232a" : "#f3f4f6";
    context.fillRect(0, 0, width, height);
    context.font = "10px system-ui, sans-serif";
    if (this.column > 1) this.paintCells(context, width, height - AXIS);
    else {
      this.paintBars(context, width);
      lanes.forEach((lane, i) => this.paintLane(context, lane, width, BARS + i * LANE));
    }
    if (width > 500 && lanes.length) this.paintShades(context, width);
    this.paintAxis(context, width, height);
  }

  isPicked(slot) {
    return !this.span || (slot >= this.span[0] && slot < this.span[1]);
  }

  // Weight by column of pixels, so that thousands of slots are a picture and not noise: each is the
  // mean of its slots.
  columns(totals, width) {
    const count = Math.min(totals.length, Math.floor(width));
    return Array.from({ length: count }, (_, i) => {
      const from = Math.floor((i * totals.length) / count);
      const to = Math.max(from + 1, Math.floor(((i + 1) * totals.length) / count));
      let sum = 0;
      for (let slot = from; slot < to; slot++) sum += totals[slot];
      return { slot: from, weight: sum / (to - from) };
    });
  }

  paintBars(context, width) {
    const columns = this.columns(this.totals, width);
    const most = columns.reduce((top, { weight }) => Math.max(top, weight), 0) || 1;
    const wide = width / (columns.length || 1);
    columns.forEach(({ slot, weight }, i) => {
      const size = (weight / most) * (BARS - 14);
      context.fillStyle = this.isPicked(slot) ? HEAT : this.dark ? "#565b66" : "#b9bec8";
      context.fillRect(i * wide, BARS - size, Math.max(wide - (wide > 3 ? 0.5 : 0), 0.5), size);
    });
    context.fillStyle = this.dark ? "#a0a7b5" : "#5a6170";
    context.textBaseline = "top";
    const second = (most * 1e9) / this.slotNs;
    context.fillText(`${this.note}up to ${this.rate(second)}`, GUTTER, 2);
  }

  // What the shades of lanes and cells mean, in the upper right corner.
  paintShades(context, width) {
    context.textBaseline = "top";
    const words = ["by quarters of the slots: less", "more"].map((text) => [text, context.measureText(text).width]);
    let x = width - GUTTER - words[1][1];
    const paint = () => (context.fillStyle = this.dark ? "#a0a7b5" : "#5a6170");
    paint();
    context.fillText(words[1][0], x, 2);
    context.fillStyle = HEAT;
    for (let shade = 1; shade > 0; shade -= 0.25) {
      x -= 13;
      context.globalAlpha = shade;
      context.fillRect(x, 3, 10, 8);
    }
    context.globalAlpha = 1;
    paint();
    context.fillText(words[0][0], x - 4 - words[0][1], 2);
  }

  // A strip: the darker, the more; colours are the quarters of what is not zero.
  paintLane(context, { name, totals }, width, top) {
    const columns = this.columns(totals, width);
    const shade = quantiles(columns.map(({ weight }) => weight));
    const wide = width / (columns.length || 1);
    columns.forEach(({ slot, weight }, i) => {
      if (!weight) return;
      context.globalAlpha = this.isPicked(slot) ? shade(weight) : 0.15;
      context.fillStyle = HEAT;
      context.fillRect(i * wide, top + 1, Math.max(wide, 0.5), LANE - 2);
    });
    context.globalAlpha = 1;
    context.textBaseline = "middle";
    context.lineWidth = 3;
    context.strokeStyle = this.dark ? "#20232a" : "#f3f4f6";
    context.strokeText(name, GUTTER, top + LANE / 2, width / 2);
    context.fillStyle = this.dark ? "#e8eaee" : "#15171c";
    context.fillText(name, GUTTER, top + LANE / 2, width / 2);
  }

  paintCells(context, width, height) {
    const { totals, column } = this;
    const shade = quantiles(totals);
    const columns = Math.ceil(totals.length / column);
    const [wide, tall] = [width / columns, height / column];
    totals.forEach((weight, slot) => {
      if (!weight) return;
      context.globalAlpha = this.isPicked(slot) ? shade(weight) : 0.15;
      context.fillStyle = this.isPicked(slot) ? HEAT : "#8a8f99";
      const [x, y] = [Math.floor(slot / column) * wide, height - (slot % column + 1) * tall];
      context.fillRect(x, y, Math.max(wide - 0.5, 0.5), Math.max(tall - (tall > 3 ? 0.5 : 0), 0.5));
    });
    context.globalAlpha = 1;
  }

  // A moment so many seconds behind the left edge.
  label(at, seconds) {
    if (!this.endsNow) return `${at} s`;
    return at < seconds ? `${Number((at - seconds).toFixed(3))} s` : "now";
  }

  paintAxis(context, width, height) {
    const seconds = (this.totals.length * this.slotNs) / 1e9;
    const step = axisStep(seconds, Math.max(2, Math.floor(width / 90)));
    context.fillStyle = this.dark ? "#a0a7b5" : "#5a6170";
    context.textBaseline = "bottom";
    for (let at = 0; at <= seconds * 1.0001; at += step) {
      const x = (at / (seconds || 1)) * width;
      context.fillRect(Math.min(x, width - 1), height - AXIS, 1, 4);
      const text = this.label(Number(at.toFixed(3)), seconds);
      const wide = context.measureText(text).width;
      context.fillText(text, Math.min(Math.max(x - wide / 2, 2), width - wide - 2), height - 1);
    }
  }
}

// A step of 1, 2 or 5 times a power of ten, so that there are at most `most` of them.
function axisStep(whole, most) {
  if (!(whole > 0)) return 1;
  const least = whole / most;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) ?? 10 * power;
}

// What a weight is painted with, 0.25 to 1: its quarter among those that are not zero.
function quantiles(weights) {
  const sorted = [...weights].filter((weight) => weight > 0).sort((a, b) => a - b);
  const bounds = [0.25, 0.5, 0.75].map((part) => sorted[Math.floor(part * sorted.length)] ?? Infinity);
  if (bounds[0] === bounds[2]) return (weight) => 0.3 + 0.7 * (weight / (sorted[sorted.length - 1] || 1));
  return (weight) => 0.25 + 0.25 * bounds.filter((bound) => weight >= bound).length;
}
