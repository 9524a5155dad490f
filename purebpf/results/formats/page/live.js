// The live page: each second's stacks arrive as a small profile of their own and are kept for as
// long as the window is.

const LONGEST_S = 600;

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
    const functions = unpackFunctions(head).map((each) => this.intern(this.functions, each));
    const labels = head.labels.map((each) => this.intern(this.labels, each));
    const stacks = [];
    const path = [];
    let at = 0;
    rows.weight.forEach((weight, row) => {
      path.length = rows.keep[row];
      for (let i = 0; i < rows.more[row]; i++) path.push(functions[rows.frames[at++]]);
      stacks.push({ path: [...path], label: labels[rows.label[row]], weight });
    });
    this.seconds.push({ at: head.second, stacks, head });
    while (this.seconds[0].at <= head.second - LONGEST_S) this.seconds.shift();
    if (!this.paused) this.refresh();
  }

  // The same object for equal ones.
  intern(table, each) {
    const key = JSON.stringify(each);
    if (!table.has(key)) table.set(key, each);
    return table.get(key);
  }

  refresh() {
    const last = this.seconds.at(-1);
    if (!last) return;
    const first = last.at - this.windowS + 1;
    const shown = this.seconds.filter((each) => each.at >= first);
    this.changed(merged(shown, first, last.head), last.head, shown.length);
  }
}

// One model of many seconds, whose stacks are sorted and merged as report/html.py does.
function merged(seconds, first, head) {
  const all = new Map();
  for (const { stacks } of seconds) {
    for (const { path } of stacks) for (const each of path) all.set(each, 0);
  }
  const functions = [...all.keys()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  functions.forEach((each, i) => all.set(each, i));
  const labels = new Map();
  const entries = new Map();
  for (const { at, stacks } of seconds) {
    for (const { path, label, weight } of stacks) {
      if (!labels.has(label)) labels.set(label, labels.size);
      const numbers = path.map((each) => all.get(each));
      const key = `${labels.get(label)}:${numbers}`;
      let entry = entries.get(key);
      if (!entry) entries.set(key, (entry = { numbers, label: labels.get(label), slots: new Map() }));
      const slot = at - first;
      entry.slots.set(slot, (entry.slots.get(slot) ?? 0) + weight);
    }
  }
  const sorted = [...entries.values()].sort((a, b) => compare(a.numbers, b.numbers));
  return new Model(functions, [...labels.keys()], packed(sorted), head.slot_ns);
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
  entries.forEach(({ numbers, label, slots }, row) => {
    let keep = 0;
    while (keep < last.length && keep < numbers.length && last[keep] === numbers[keep]) keep++;
    rows.keep.push(keep);
    rows.more.push(numbers.length - keep);
    rows.frames.push(...numbers.slice(keep));
    rows.label.push(label);
    rows.weight.push([...slots.values()].reduce((a, b) => a + b, 0));
    for (const [slot, weight] of slots) {
      rows.slotRow.push(row);
      rows.slot.push(slot);
      rows.slotWeight.push(weight);
    }
    last = numbers;
  });
  return rows;
}
