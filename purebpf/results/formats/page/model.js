// The profile as arrays: a tree of frames in depth-first order, and the weights of its nodes.

function fromBase64(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64); // browsers since 2025
  const text = atob(base64);
  const found = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) found[i] = text.charCodeAt(i);
  return found;
}

// What shape/page_data.py packed: little-endian arrays, deflated, in base64.
async function unpack(head, base64) {
  const stream = new Blob([fromBase64(base64)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  let at = 0;
  const take = (Kind, count) => {
    const found = new Kind(buffer, at, count);
    at += count * Kind.BYTES_PER_ELEMENT;
    return found;
  };
  const { rows, frames, slots } = head.counts;
  return {
    weight: take(Float64Array, rows),
    before: take(Float64Array, head.compare ? rows : 0),
    slotWeight: take(Float64Array, slots),
    label: take(Uint32Array, rows),
    slotRow: take(Uint32Array, slots),
    slot: take(Uint32Array, slots),
    frames: take(head.functions.name.length > 65535 ? Uint32Array : Uint16Array, frames),
    keep: take(Uint16Array, rows),
    more: take(Uint16Array, rows),
  };
}

// Functions by number; `module` and `why` are numbers of texts, `kind` one of head.kinds.
function unpackFunctions(head) {
  const { name, short, module, kind, why, source } = head.functions;
  return name.map((text, i) => ({
    name: text,
    short: short?.[i] ?? text,
    module: head.texts[module[i]],
    kind: head.kinds[kind[i]],
    why: head.texts[why[i]],
    source: source?.[i] ?? "",
  }));
}

// What a thread did while time passed, in the order of the legend.
const STATES = ["running", "run queue", "sleeping", "Python's GIL", "blocked", "idle", "stopped", "unknown"];

// A label's state: its kind of time, and the letter that ps(1) shows. Who waits for something to do is idle.
function stateOf({ time, state, idle }) {
  if (idle) return "idle";
  if (time === "on-CPU" || state === "running") return "running";
  if (time === "run-queue" || state === "R") return "run queue";
  return {
    S: "sleeping", gil: "Python's GIL", D: "blocked", I: "idle", P: "idle", T: "stopped", t: "stopped",
  }[state] ?? "unknown";
}

// rows: each row keeps `keep` frames of the path before it and adds `more`, so that the paths,
// sorted, are the tree in depth-first order: a node's children follow it, up to `end`.
class Model {
  constructor(functions, labels, rows, slotNs) {
    const count = rows.frames.length + 1;
    this.functions = functions;
    this.labels = labels;
    this.rows = rows;
    this.slotNs = slotNs;
    this.compares = rows.before.length > 0;
    this.parent = new Int32Array(count);
    this.frame = new Int32Array(count);
    this.end = new Int32Array(count);
    this.node = new Int32Array(rows.label.length);
    this.own = new Float64Array(count);
    this.total = new Float64Array(count);
    this.ownBefore = this.compares ? new Float64Array(count) : null;
    this.totalBefore = this.compares ? new Float64Array(count) : null;
    this.slots = rows.slot.reduce((most, slot) => Math.max(most, slot + 1), 0);
    this.states = STATES.filter((state) => labels.some((label) => (label.time || label.state) && stateOf(label) === state));
    this.plant();
    this.leaf = this.leaves();
    this.self = this.leaf === this.node ? this.own : new Float64Array(count);
    this.selfBefore = this.leaf === this.node || !this.compares ? this.ownBefore : new Float64Array(count);
  }

  plant() {
    const { keep, more, frames } = this.rows;
    const { parent, frame, end, node } = this;
    const open = new Int32Array(65537); // the path to the last node; a path has fewer frames
    let depth = 0;
    let next = 1;
    frame[0] = -1;
    frame.set(frames, 1);
    for (let row = 0; row < keep.length; row++) {
      while (depth > keep[row]) end[open[depth--]] = next;
      for (const last = next + more[row]; next < last; next++) {
        parent[next] = open[depth];
        open[++depth] = next;
      }
      node[row] = open[depth];
    }
    while (depth >= 0) end[open[depth--]] = next;
  }

  // The node that spent the weight of each row: the last one, or, where a waker follows behind a
  // divider, the one in front of that.
  leaves() {
    const { functions, frame, parent, node } = this;
    if (!functions.some(({ kind }) => kind === "divider")) return node;
    const found = Int32Array.from(node);
    const leaf = new Int32Array(frame.length); // 0: no divider above
    for (let i = 1; i < frame.length; i++) {
      leaf[i] = leaf[parent[i]] || (functions[frame[i]].kind === "divider" ? parent[i] : 0);
    }
    for (let row = 0; row < found.length; row++) found[row] = leaf[found[row]] || found[row];
    return found;
  }

  // Weigh what passes: `wanted` has 0 or 1 for each label, `span` is [first slot, slot behind],
  // and where `only` is not empty, stacks count that have all its functions.
  weigh(wanted, span, only = []) {
    const rows = this.rowsWith(only);
    this.weights = this.rowWeights(wanted, span);
    if (rows) this.weights.forEach((_, row) => { if (!rows[row]) this.weights[row] = 0; });
    this.sum(this.weights, this.own, this.total, this.self);
    this.firsts = null;
    this.weighedSpan = span;
    if (!this.compares) return;
    const before = this.rows.before.map((weight, row) => (
      wanted[this.rows.label[row]] && (!rows || rows[row]) ? weight : 0
    ));
    this.weightsBefore = before;
    this.sum(before, this.ownBefore, this.totalBefore, this.selfBefore);
  }

  // For each row 1 if its stack has all of `functions`; null where none is asked for.
  rowsWith(functions) {
    if (!functions.length) return null;
    const { parent, frame, node } = this;
    const found = new Uint8Array(node.length).fill(1);
    for (const wanted of functions) {
      const under = new Uint8Array(parent.length);
      for (let i = 1; i < parent.length; i++) under[i] = under[parent[i]] | (frame[i] === wanted);
      node.forEach((at, row) => (found[row] &= under[at]));
    }
    return found;
  }

  // The slot in which each node was first seen, of what is weighed.
  firstSlots() {
    if (this.firsts) return this.firsts;
    const { slot, slotRow } = this.rows;
    const [from, to] = this.weighedSpan ?? [0, Infinity];
    const first = new Float64Array(this.frame.length).fill(Infinity);
    for (let i = 0; i < slot.length; i++) {
      const row = slotRow[i];
      if (!this.weights[row] || slot[i] < from || slot[i] >= to) continue;
      first[this.node[row]] = Math.min(first[this.node[row]], slot[i]);
    }
    for (let i = first.length - 1; i > 0; i--) first[this.parent[i]] = Math.min(first[this.parent[i]], first[i]);
    this.firsts = first;
    return first;
  }

  // Add to `parts`, by number of STATES, the weight of what lies at and below a node. Rows are in
  // the order of their nodes, so that those of a subtree are neighbours.
  addStates(node, parts) {
    const { end, rows, weights, labels } = this;
    this.stateNumbers ??= labels.map((label) => STATES.indexOf(stateOf(label)));
    for (let row = this.firstRow(node); row < this.node.length && this.node[row] < end[node]; row++) {
      parts[this.stateNumbers[rows.label[row]]] += weights[row];
    }
  }

  firstRow(node) {
    let low = 0;
    let high = this.node.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.node[middle] < node) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  rowWeights(wanted, span) {
    const { weight, label, slot, slotRow, slotWeight } = this.rows;
    const found = new Float64Array(weight.length);
    if (span) {
      for (let i = 0; i < slot.length; i++) {
        const row = slotRow[i];
        if (slot[i] >= span[0] && slot[i] < span[1] && wanted[label[row]]) {
          found[row] += slotWeight[i];
        }
      }
      return found;
    }
    for (let row = 0; row < weight.length; row++) {
      if (wanted[label[row]]) found[row] = weight[row];
    }
    return found;
  }

  sum(weights, own, total, self) {
    own.fill(0);
    for (let row = 0; row < weights.length; row++) own[this.node[row]] += weights[row];
    if (self !== own) {
      self.fill(0);
      for (let row = 0; row < weights.length; row++) self[this.leaf[row]] += weights[row];
    }
    total.set(own);
    for (let i = total.length - 1; i > 0; i--) total[this.parent[i]] += total[i];
  }

  // For each function, 1 where `test` says so.
  matching(test) {
    return Uint8Array.from(this.functions, (entry) => (test(entry) ? 1 : 0));
  }

  // The weight of the stacks that have a function in `matched`.
  matchedWeight(matched) {
    const { parent, frame, own } = this;
    const under = new Uint8Array(parent.length);
    let found = 0;
    for (let i = 1; i < parent.length; i++) {
      under[i] = under[parent[i]] | matched[frame[i]];
      if (under[i]) found += own[i];
    }
    return found;
  }

  // Call `visit(node, key)` for each node that has no ancestor with its key; wakers are left out.
  outermost(keys, count, visit) {
    const { frame, end, functions } = this;
    const inside = new Int32Array(count);
    const open = [];
    for (let i = 1; i < frame.length; i++) {
      if (functions[frame[i]].kind === "divider") {
        i = end[i] - 1;
        continue;
      }
      while (open.length && end[open[open.length - 1]] <= i) inside[keys[frame[open.pop()]]]--;
      const key = keys[frame[i]];
      if (inside[key]++ === 0) visit(i, key);
      open.push(i);
    }
  }

  // Own and total weight by key, and those of before; keys[function] is a number below `count`.
  byFunction(keys, count) {
    const column = () => new Float64Array(count);
    const found = { own: column(), total: column(), ownBefore: column(), totalBefore: column() };
    for (let i = 1; i < this.frame.length; i++) {
      const key = keys[this.frame[i]];
      found.own[key] += this.self[i];
      if (this.compares) found.ownBefore[key] += this.selfBefore[i];
    }
    this.outermost(keys, count, (node, key) => {
      found.total[key] += this.total[node];
      if (this.compares) found.totalBefore[key] += this.totalBefore[node];
    });
    return found;
  }

  // Frames from root to `node`.
  path(node) {
    const found = [];
    for (let at = node; at > 0; at = this.parent[at]) found.push(this.frame[at]);
    return found.reverse();
  }

  // Weight of each slot under the filter of labels: in all, and for each of the heaviest processes.
  slotTotals(wanted, most) {
    const { label, slot, slotRow, slotWeight } = this.rows;
    const all = new Float64Array(this.slots);
    const lanes = new Map();
    for (let i = 0; i < slot.length; i++) {
      const number = label[slotRow[i]];
      if (!wanted[number]) continue;
      all[slot[i]] += slotWeight[i];
      const name = OF_LABEL.process(this.labels[number]);
      if (!lanes.has(name)) lanes.set(name, { name, weight: 0, totals: new Float64Array(this.slots) });
      const lane = lanes.get(name);
      lane.weight += slotWeight[i];
      lane.totals[slot[i]] += slotWeight[i];
    }
    return { all, lanes: [...lanes.values()].sort((a, b) => b.weight - a.weight).slice(0, most) };
  }
}
