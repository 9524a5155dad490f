// What is drawn: a tree whose nodes stand for many nodes of the model and find their children
// only when they are looked at. A node wide enough to see has few of them.

class Branch {
  constructor(model, frame, parent) {
    this.model = model;
    this.frame = frame;
    this.parent = parent;
    this.depth = parent ? parent.depth + 1 : 0;
    this.weight = 0;
    this.before = 0;
    this.known = null;
  }

  get children() {
    this.known ??= [...this.grown().values()].sort((a, b) => a.frame - b.frame);
    return this.known;
  }

  // From here to the root, this one first.
  *ancestry() {
    for (let at = this; at; at = at.parent) yield at;
  }
}

// Towards the leaves: members are nodes of the model, children are theirs, merged by function.
class Callees extends Branch {
  constructor(model, frame, parent) {
    super(model, frame, parent);
    this.members = [];
  }

  add(node) {
    this.members.push(node);
    this.weight += this.model.total[node];
    if (this.model.compares) this.before += this.model.totalBefore[node];
  }

  grown() {
    const { frame, end, total, totalBefore } = this.model;
    const found = new Map();
    for (const member of this.members) {
      for (let node = member + 1; node < end[member]; node = end[node]) {
        if (!total[node] && !totalBefore?.[node]) continue;
        let child = found.get(frame[node]);
        if (!child) found.set(frame[node], (child = new Callees(this.model, frame[node], this)));
        child.add(node);
      }
    }
    return found;
  }
}

// Towards the roots: a member is a node, with the part of its weight that came from the leaf.
class Callers extends Branch {
  constructor(model, frame, parent) {
    super(model, frame, parent);
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

  grown() {
    const { frame, parent } = this.model;
    const found = new Map();
    this.members.forEach((member, i) => {
      const node = this.depth || this.only ? parent[member] : member;
      if (node <= 0) return;
      let child = found.get(frame[node]);
      if (!child) found.set(frame[node], (child = new Callers(this.model, frame[node], this)));
      child.add(node, this.shares[i], this.sharesBefore[i]);
    });
    return found;
  }
}

// Root to leaf: the usual flame graph.
function topDown(model) {
  const root = new Callees(model, -1, null);
  root.add(0);
  return root;
}

// Leaf to root: who called what used the time itself.
function bottomUp(model) {
  const root = new Callers(model, -1, null);
  for (let node = 1; node < model.own.length; node++) {
    const before = model.ownBefore?.[node] ?? 0;
    if (model.own[node] || before) root.add(node, model.own[node], before);
  }
  return root;
}

// The callers and the callees of one function, each as a tree that begins with it.
function sandwich(model, wanted) {
  const callers = new Callers(model, wanted, null);
  const callees = new Callees(model, wanted, null);
  const keys = Int32Array.from(model.functions, (_, i) => i);
  callers.only = true;
  model.outermost(keys, keys.length, (node, key) => {
    if (key !== wanted || !(model.total[node] || model.totalBefore?.[node])) return;
    callers.add(node, model.total[node], model.totalBefore?.[node] ?? 0);
    callees.add(node);
  });
  return { callers, callees };
}
