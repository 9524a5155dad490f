// The time line: a column for each second, a cell for each part of it, or bars where a slot is
// longer. Dragging picks a span of slots.

class Timeline {
  constructor(canvas, onPick) {
    this.canvas = canvas;
    this.span = null;
    this.from = -1;
    canvas.addEventListener("pointerdown", (event) => {
      this.from = this.slotAt(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.from >= 0) this.mark(this.slotAt(event));
    });
    canvas.addEventListener("pointerup", (event) => {
      this.mark(this.slotAt(event));
      this.from = -1;
      onPick(this.span);
    });
  }

  // How many slots a column has: those of a second, or one.
  static columnOf(slotNs) {
    return slotNs && slotNs < 1e9 ? Math.max(1, Math.round(1e9 / slotNs)) : 1;
  }

  mark(slot) {
    const [first, last] = [this.from, slot].sort((a, b) => a - b);
    this.span = [Math.max(0, first), Math.min(this.totals.length, last + 1)];
    this.draw(this.totals, this.slotNs, this.dark);
  }

  slotAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const columns = Math.ceil(this.totals.length / this.column);
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
    const cell = this.column === 1
      ? 0
      : this.column - 1 - Math.floor(((event.clientY - box.top) / box.height) * this.column);
    return Math.max(0, Math.min(this.totals.length - 1, column * this.column + cell));
  }

  draw(totals, slotNs, dark) {
    Object.assign(this, { totals, slotNs, dark, column: Timeline.columnOf(slotNs) });
    const { canvas, column } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d", { alpha: false });
    context.scale(ratio, ratio);
    context.fillStyle = dark ? "#20232a" : "#f3f4f6";
    context.fillRect(0, 0, width, height);
    const columns = Math.ceil(totals.length / column);
    const most = totals.reduce((a, b) => Math.max(a, b), 0) || 1;
    const wide = width / columns;
    const tall = height / column;
    totals.forEach((weight, slot) => {
      if (!weight) return;
      const part = weight / most;
      const picked = !this.span || (slot >= this.span[0] && slot < this.span[1]);
      const [x, cell] = [Math.floor(slot / column) * wide, slot % column];
      context.globalAlpha = (column === 1 ? 1 : 0.15 + 0.85 * part) * (picked ? 1 : 0.3);
      context.fillStyle = picked ? "#d94f30" : "#8a8f99";
      const size = column === 1 ? part * height : tall;
      const y = column === 1 ? height - size : height - (cell + 1) * tall;
      context.fillRect(x, y, Math.max(wide - 0.5, 0.5), Math.max(size - (tall > 3 ? 0.5 : 0), 0.5));
    });
  }
}
