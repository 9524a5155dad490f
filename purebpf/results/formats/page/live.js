// The live page: each second's stacks arrive as a small profile of their own and are kept for as
// long as the window is.

const LONGEST_S = 600;
const SLOT_NS = 1e9; // what a message covers is divided into seconds

class Live {
  // `onChange(model)` gets a model of everything in the window.
  constructor(onChange) {
    this.seconds = [];
    this.windowS = 60;
    this.paused = false;
    this.changed = onChange;
    this.functions = new Map();
    this.labels = new Map();
  }

  listen(address) {
    const source = new EventSource(address);
    source.addEventListener("second", (event) => this.take(JSON.parse(event.data)));
    source.addEventListener("end", () => {
      source.close();
      this.status("the command has ended");
    });
    source.addEventListener("error", () => this.status("no connection; trying again"));
  }

  async take({ head, bytes }) {
    const rows = await unpack(head, bytes);
    const functions = unpackFunctions(head).map((entry) => this.intern(this.functions, entry));
    const labels = head.labels.map((label) => this.intern(this.labels, label));
    const stacks = [];
    const path = [];
    let at = 0;
    rows.weight.forEach((weight, row) => {
      path.length = rows.keep[row];
      for (let i = 0; i < rows.more[row]; i++) path.push(functions[rows.frames[at++]]);
      stacks.push({ path: [...path], label: labels[rows.label[row]], weight });
    });
    this.seconds.push({ at: head.at_s, length: head.length_s, stacks, head });
    while (this.seconds[0].at <= head.at_s - LONGEST_S) this.seconds.shift();
    if (!this.paused) this.refresh();
  }

  // The same object for equal ones.
  intern(table, entry) {
    const key = JSON.stringify(entry);
    if (!table.has(key)) table.set(key, entry);
    return table.get(key);
  }

  refresh() {
    const last = this.seconds.at(-1);
    if (!last) return;
    const first = last.at - this.windowS;
    const shown = this.seconds.filter(({ at }) => at > first);
    const length = shown.reduce((sum, second) => sum + second.length, 0);
    this.changed(merged(shown, first, this.windowS, last.head), last.head, Math.round(length));
  }
}

// The slots of a second each that a message covers, with the part that falls into each: one that
// took three seconds is not a peak in the last of them.
function slotsOf({ at, length }, first, count) {
  const [from, to] = [Math.max(0, at - length - first), Math.min(count, at - first)];
  const whole = to - from;
  const slots = [];
  for (let slot = Math.floor(from); slot < to && slot < count; slot++) {
    const part = Math.min(to, slot + 1) - Math.max(from, slot);
    if (part > 0) slots.push([slot, whole > 0 ? part / whole : 1]);
  }
  return slots.length ? slots : [[Math.max(0, Math.min(count - 1, Math.floor(to))), 1]];
}

// One model of many messages, whose stacks are sorted and merged as shape/page_data.py does.
function merged(seconds, first, count, head) {
  const all = new Map();
  for (const { stacks } of seconds) {
    for (const { path } of stacks) for (const entry of path) all.set(entry, 0);
  }
  const functions = [...all.keys()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  functions.forEach((entry, i) => all.set(entry, i));
  const labels = new Map();
  const entries = new Map();
  for (const second of seconds) {
    const parts = slotsOf(second, first, count);
    for (const { path, label, weight } of second.stacks) {
      if (!labels.has(label)) labels.set(label, labels.size);
      const numbers = path.map((entry) => all.get(entry));
      const key = `${labels.get(label)}:${numbers}`;
      let entry = entries.get(key);
      if (!entry) entries.set(key, (entry = { numbers, label: labels.get(label), weight: 0, slots: new Map() }));
      for (const [slot, part] of parts) {
        entry.slots.set(slot, (entry.slots.get(slot) ?? 0) + weight * part);
      }
      entry.weight += weight;
    }
  }
  const sorted = [...entries.values()].sort((a, b) => compare(a.numbers, b.numbers));
  return new Model(functions, [...labels.keys()], packed(sorted), SLOT_NS);
}

function compare(a, b) {
  const both = Math.min(a.length, b.length);
  for (let i = 0; i < both; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}

function packed(entries) {
  const rows = {
    weight: [], before: [], slotWeight: [], label: [], frames: [],
    slotRow: [], slot: [], keep: [], more: [],
  };
  let last = [];
  entries.forEach(({ numbers, label, weight, slots }, row) => {
    let keep = 0;
    while (keep < last.length && keep < numbers.length && last[keep] === numbers[keep]) keep++;
    rows.keep.push(keep);
    rows.more.push(numbers.length - keep);
    rows.frames.push(...numbers.slice(keep));
    rows.label.push(label);
    rows.weight.push(weight);
    for (const [slot, part] of slots) {
      rows.slotRow.push(row);
      rows.slot.push(slot);
      rows.slotWeight.push(part);
    }
    last = numbers;
  });
  return rows;
}
