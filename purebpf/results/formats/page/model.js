// The profile as arrays: a tree of frames in depth-first order, and the weights of its nodes.

function fromBase64(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64); // browsers since 2025
  const text = atob(base64);
  const found = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) found[i] = text.charCodeAt(i);
  return found;
}

// What report/html.py packed: little-endian arrays, deflated, in base64.
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
  const { name, module, kind, why } = head.functions;
  return name.map((each, i) => ({
    name: each,
    module: head.texts[module[i]],
    kind: head.kinds[kind[i]],
    why: head.texts[why[i]],
  }));
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
    this.slots = rows.slot.reduce((most, each) => Math.max(most, each + 1), 0);
    this.plant();
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

  // Weigh what passes: `wanted` has 0 or 1 for each label, `span` is [first slot, slot behind].
  weigh(wanted, span) {
    this.weights = this.rowWeights(wanted, span);
    this.sum(this.weights, this.own, this.total);
    if (!this.compares) return;
    const before = this.rows.before.map((each, row) => (wanted[this.rows.label[row]] ? each : 0));
    this.sum(before, this.ownBefore, this.totalBefore);
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

  sum(weights, own, total) {
    own.fill(0);
    for (let row = 0; row < weights.length; row++) own[this.node[row]] += weights[row];
    total.set(own);
    for (let i = total.length - 1; i > 0; i--) total[this.parent[i]] += total[i];
  }

  // For each function, 1 where `test` says so.
  matching(test) {
    return Uint8Array.from(this.functions, (each) => (test(each) ? 1 : 0));
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

  // Call `visit(node, key)` for each node that has no ancestor with its key.
  outermost(keys, count, visit) {
    const { frame, end } = this;
    const inside = new Int32Array(count);
    const open = [];
    for (let i = 1; i < frame.length; i++) {
      while (open.length && end[open[open.length - 1]] <= i) inside[keys[frame[open.pop()]]]--;
      const key = keys[frame[i]];
      if (inside[key]++ === 0) visit(i, key);
      open.push(i);
    }
  }

  // Own and total weight by key; keys[function] is a number below `count`.
  byFunction(keys, count) {
    const found = { own: new Float64Array(count), total: new Float64Array(count) };
    for (let i = 1; i < this.frame.length; i++) found.own[keys[this.frame[i]]] += this.own[i];
    this.outermost(keys, count, (node, key) => {
      found.total[key] += this.total[node];
    });
    return found;
  }

  // Frames from root to `node`.
  path(node) {
    const found = [];
    for (let at = node; at > 0; at = this.parent[at]) found.push(this.frame[at]);
    return found.reverse();
  }

  // Weight of each slot under the filter of labels.
  slotTotals(wanted) {
    const { label, slot, slotRow, slotWeight } = this.rows;
    const found = new Float64Array(this.slots);
    for (let i = 0; i < slot.length; i++) {
      if (wanted[label[slotRow[i]]]) found[slot[i]] += slotWeight[i];
    }
    return found;
  }
}
