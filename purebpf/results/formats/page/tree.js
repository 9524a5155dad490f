// What is drawn: a tree whose nodes stand for many nodes of the model and find their children
// only when they are looked at. A node wide enough to see has few of them.

// How a tree is shown. Functions that `skips` names are left out: their callees stand below their
// callers. So are frames of a kind in `kinds`.
class View {
  constructor(model, { order = "name", skips = new Set(), kinds = new Set(), unknown = false, recursion = false }) {
    this.model = model;
    this.order = order;
    this.unknown = unknown;
    this.recursion = recursion;
    this.left = Uint8Array.from(model.functions, ({ kind }, i) => (skips.has(i) || kinds.has(kind) ? 1 : 0));
  }

  // Whether a frame is drawn as a part of the one above it, or not at all.
  folds(frame, above) {
    if (this.left[frame]) return true;
    if (above < 0) return false;
    const { functions } = this.model;
    if (this.recursion && frame === above) return true;
    return this.unknown && functions[frame].kind === "unknown" && functions[above].kind === "unknown";
  }

  sort(branches) {
    const by = {
      name: (a, b) => a.frame - b.frame,
      weight: (a, b) => b.weight - a.weight || b.before - a.before || a.frame - b.frame,
      time: (a, b) => a.first - b.first || a.frame - b.frame,
    }[this.order];
    return branches.sort(by);
  }
}

class Branch {
  constructor(view, frame, parent) {
    this.view = view;
    this.model = view.model;
    this.frame = frame;
    this.parent = parent;
    this.depth = parent ? parent.depth + 1 : 0;
    this.weight = 0;
    this.before = 0;
    this.known = null;
  }

  get children() {
    this.known ??= this.view.sort([...this.grown().values()]);
    return this.known;
  }

  // The slot in which one of its members was first seen.
  get first() {
    const firsts = this.model.firstSlots();
    this.earliest ??= this.members.reduce((least, node) => Math.min(least, firsts[node]), Infinity);
    return this.earliest;
  }

  // From here to the root, this one first.
  *ancestry() {
    for (let at = this; at; at = at.parent) yield at;
  }
}

// Towards the leaves: members are nodes of the model, children are theirs, merged by function.
class Callees extends Branch {
  constructor(view, frame, parent) {
    super(view, frame, parent);
    this.members = [];
  }

  add(node) {
    this.members.push(node);
    this.weight += this.model.total[node];
    if (this.model.compares) this.before += this.model.totalBefore[node];
  }

  // What was spent here and not in a callee.
  get own() {
    return this.weight - this.children.reduce((sum, { weight }) => sum + weight, 0);
  }

  // The weight by number of STATES.
  get states() {
    const parts = new Float64Array(STATES.length);
    for (const node of this.members) this.model.addStates(node, parts);
    return parts;
  }

  grown() {
    const { frame, end, total, totalBefore } = this.model;
    const found = new Map();
    const open = [...this.members];
    while (open.length) {
      const member = open.pop();
      for (let node = member + 1; node < end[member]; node = end[node]) {
        if (!total[node] && !totalBefore?.[node]) continue;
        if (this.view.folds(frame[node], this.frame)) {
          open.push(node);
          continue;
        }
        let child = found.get(frame[node]);
        if (!child) found.set(frame[node], (child = new Callees(this.view, frame[node], this)));
        child.add(node);
      }
    }
    return found;
  }
}

// Towards the roots: a member is a node, with the part of its weight that came from the leaf.
class Callers extends Branch {
  constructor(view, frame, parent) {
    super(view, frame, parent);
    this.members = [];
    this.shares = [];
    this.sharesBefore = [];
  }

  add(node, weight, before) {
    this.members.push(node);
    this.shares.push(weight);
    this.sharesBefore.push(before);
    this.weight += weight;
    this.before += before;
  }

  // The branch that spent the weight is the first one.
  get own() {
    return this.depth <= 1 && !this.only ? this.weight : 0;
  }

  grown() {
    const { frame, parent } = this.model;
    const found = new Map();
    this.members.forEach((member, i) => {
      let node = this.depth || this.only ? parent[member] : member;
      while (node > 0 && this.view.folds(frame[node], this.depth || this.only ? this.frame : -1)) {
        node = parent[node];
      }
      if (node <= 0) return;
      let child = found.get(frame[node]);
      if (!child) found.set(frame[node], (child = new Callers(this.view, frame[node], this)));
      child.add(node, this.shares[i], this.sharesBefore[i]);
    });
    return found;
  }
}

// Root to leaf: the usual flame graph.
function topDown(view) {
  const root = new Callees(view, -1, null);
  root.add(0);
  return root;
}

// Leaf to root: who called what used the time itself.
function bottomUp(view) {
  const { self, selfBefore } = view.model;
  const root = new Callers(view, -1, null);
  for (let node = 1; node < self.length; node++) {
    const before = selfBefore?.[node] ?? 0;
    if (self[node] || before) root.add(node, self[node], before);
  }
  return root;
}

// The callers and the callees of one function, each as a tree that begins with it.
function sandwich(view, wanted) {
  const { model } = view;
  const callers = new Callers(view, wanted, null);
  const callees = new Callees(view, wanted, null);
  const keys = Int32Array.from(model.functions, (_, i) => i);
  callers.only = true;
  model.outermost(keys, keys.length, (node, key) => {
    if (key !== wanted || !(model.total[node] || model.totalBefore?.[node])) return;
    callers.add(node, model.total[node], model.totalBefore?.[node] ?? 0);
    callees.add(node);
  });
  return { callers, callees };
}
