// The page: what is chosen, and what follows from it.

const $ = (id) => document.getElementById(id);
const MANY_THREADS = 40; // a row for each would cut every function into slices
const TABS = ["graph", "table", "vanished"];

class App extends Wording {
  constructor() {
    super();
    this.flame = new Graph($("flame"));
    this.callers = new Graph($("callers"), { upwards: true });
    this.callees = new Graph($("callees"));
    this.graphs = [this.flame, this.callers, this.callees];
    this.active = this.flame;
    this.timeline = new Timeline($("heat"), (span) => this.pickSpan(span), showTip);
    this.filters = new Filters($("filters"), () => this.weigh());
    this.menu = new Menu($("menu"));
    this.span = null;
    this.inverted = false;
    this.sandwiched = -1;
    this.tab = "graph";
    this.sort = ["own", "down"];
    this.isExpression = false;
    this.hidden = new Set(); // of keys of functions, see keyOf
    this.only = new Set();
    this.dark = matchMedia("(prefers-color-scheme: dark)").matches;
    listenTo(this);
  }

  // Take a new profile, and keep what was chosen before.
  show(model, head) {
    const isFirst = !this.model;
    this.model = model;
    this.head = head;
    this.byKey = new Map(model.functions.map((entry, i) => [keyOf(entry), i]));
    for (const graph of this.graphs) graph.colours.clear();
    this.describe();
    if (isFirst) {
      if (model.functions.filter(({ kind }) => kind === "thread").length > MANY_THREADS) $("kinds").value = "thread";
      this.usualSort = head.compare ? "change.down" : "own.down";
      this.sort = this.usualSort.split(".");
      this.restore();
    }
    this.filters.offer(model);
    this.weigh();
    if (isFirst) this.restoreZoom();
  }

  describe() {
    const { head, model } = this;
    describeRun(head);
    $("compare").hidden = $("tab-vanished").hidden = !head.compare;
    $("colour").replaceChildren(...["kind", "module", ...(model.states.length ? ["state"] : [])]
      .map((name) => new Option(name, name, false, name === this.colour)));
    $("order").querySelector("[value=time]").disabled = !model.slots;
    $("columns").parentNode.hidden = !(model.slots && model.slotNs < 1e9 && 1e9 % model.slotNs === 0);
    const by = $("by").value;
    $("by").replaceChildren(...[...Object.keys(OF_FUNCTION), ...Object.keys(OF_LABEL)]
      .map((name) => new Option(name, name)));
    $("by").value = by || "function";
  }

  // By state where a profile has states, if nothing else was chosen.
  get colour() {
    return this.chosenColour || (this.model.states.length ? "state" : "kind");
  }

  // Functions as a set of numbers of this model.
  numbers(keys) {
    return new Set([...keys].map((key) => this.byKey.get(key)).filter((number) => number !== undefined));
  }

  weigh() {
    const { model, head } = this;
    const wanted = this.filters.wanted(model.labels);
    model.weigh(wanted, this.span, [...this.numbers(this.only)]);
    $("time").hidden = !model.slots;
    if (model.slots) {
      this.timeline.span = this.span;
      this.timeline.draw(model.slotTotals(wanted, LANES), model.slotNs, {
        dark: this.dark,
        rate: (weight) => this.rate(weight),
        note: head.compare ? "after: " : "",
        endsNow: Boolean(head.live),
      });
    }
    this.grow();
  }

  view(order) {
    const kinds = new Set($("kinds").value.split(" ").filter(Boolean));
    const fold = new Set($("fold").value.split(" "));
    return new View(this.model, {
      order: $("order").value || order,
      skips: this.numbers(this.hidden),
      kinds,
      unknown: fold.has("unknown"),
      recursion: fold.has("recursion"),
    });
  }

  // New trees; the focus follows by the functions of its path.
  grow() {
    const path = this.flame.focus ? this.pathTo(this.flame.focus) : [];
    const root = this.inverted ? bottomUp(this.view("weight")) : topDown(this.view("name"));
    this.flame.show(root, walkDown(root, path, this.byKey));
    if (this.sandwiched >= 0) this.openSandwich(this.sandwiched);
    this.select(this.flame, null);
    this.search();
  }

  // Keys of the functions from the root to a branch.
  pathTo(branch) {
    return [...branch.ancestry()].slice(0, -1).map(({ frame, model }) => keyOf(model.functions[frame])).reverse();
  }

  search() {
    this.test = null;
    this.matched = null;
    this.hits = [];
    $("search").classList.remove("wrong");
    $("found").textContent = "";
    try {
      this.test = searchTest($("search").value, this.isExpression);
    } catch (error) {
      $("search").classList.add("wrong");
      $("found").textContent = `wrong expression: ${error.message.split(": ").at(-1)}`;
    }
    if (this.test) {
      this.matched = this.model.matching(this.test);
      this.hits = searchHits(this.model, this.matched);
      const part = this.model.matchedWeight(this.matched) / (this.model.total[0] || 1);
      const functions = this.hits.length === 1 ? "1 function" : `${this.hits.length} functions`;
      $("found").textContent = `${(100 * part).toFixed(2)}% in ${functions}`;
    }
    this.hit = -1;
    $("hits").hidden = !this.hits.length;
    if (this.hits.length) this.listHits();
    this.draw();
  }

  listHits() {
    const whole = this.model.total[0] || 1;
    $("hit-list").replaceChildren(...this.hits.slice(0, SHOWN).map(({ frame, total }, i) => {
      const button = document.createElement("button");
      const share = Object.assign(document.createElement("span"), { textContent: `${((100 * total) / whole).toFixed(2)}%` });
      button.append(this.shortOf(frame), share);
      button.title = this.nameOf(frame);
      button.addEventListener("click", () => {
        $("hits-open").open = false;
        this.goToHit(i);
      });
      const item = document.createElement("li");
      item.append(button);
      return item;
    }));
  }

  // Show the widest box of a hit; the graph zooms out as far as it must.
  goToHit(number) {
    if (!this.hits.length) return;
    this.hit = (number + this.hits.length) % this.hits.length;
    const { frame } = this.hits[this.hit];
    this.tab = "graph";
    this.sandwiched = -1;
    this.draw();
    const box = this.widest(frame) ?? (this.zoom(this.flame, this.flame.root), this.widest(frame));
    $("found").textContent = `${this.hit + 1} of ${this.hits.length}: ${this.shortOf(frame)}${box ? "" : " (too narrow to draw)"}`;
    if (!box) return;
    this.select(this.flame, box.branch);
    this.draw();
    this.reveal(box.branch);
  }

  widest(frame) {
    let widest;
    for (const boxes of this.flame.rows) {
      for (const box of boxes) if (box.branch.frame === frame && !(widest?.width >= box.width)) widest = box;
    }
    return widest;
  }

  reveal(branch) {
    const place = this.flame.find(branch);
    if (!place) return;
    const top = $("flame").getBoundingClientRect().top + place.top;
    if (top < 60 || top > innerHeight - 80) scrollBy({ top: top - innerHeight / 2 });
  }

  style() {
    const { model } = this;
    const style = {
      by: this.colour,
      dark: this.dark,
      matched: this.matched,
      size: (branch) => branch.weight,
      name: (frame) => this.shortOf(frame),
      function: (frame) => model.functions[frame],
    };
    if (model.compares) {
      style.size = {
        weight: (branch) => branch.weight * this.afterScale,
        before: (branch) => branch.before * this.beforeScale,
        both: (branch) => this.greater(branch),
      }[$("widths").value];
      style.change = (branch) => this.change(branch);
    }
    return style;
  }

  // Weights in parts of everything, so that a longer run does not look slower; or, absolute, both
  // in parts of the greater sum.
  get afterScale() {
    const { total, totalBefore } = this.model;
    return 1 / ($("scale").value === "absolute" ? Math.max(total[0], totalBefore[0]) : total[0] || 1);
  }

  get beforeScale() {
    const { total, totalBefore } = this.model;
    return 1 / ($("scale").value === "absolute" ? Math.max(total[0], totalBefore[0]) : totalBefore[0] || 1);
  }

  // As wide as both of its own parts and its children need.
  greater(branch) {
    const [after, before] = [branch.weight * this.afterScale, branch.before * this.beforeScale];
    branch.wide ??= Math.max(
      after,
      before,
      after + before > 1e-4 ? branch.children.reduce((sum, child) => sum + this.greater(child), 0) : 0,
    );
    return branch.wide;
  }

  change(branch) {
    if (this.isChance(branch.weight, branch.before)) return 0;
    const [after, before] = [branch.weight * this.afterScale, branch.before * this.beforeScale];
    return (after - before) / (Math.max(after, before) || 1);
  }

  // Whether the chance of sampling explains a change: purebpf/results/shape/chance.py.
  isChance(after, before) {
    const [scale, scaleBefore] = [this.afterScale, this.beforeScale];
    const error = Math.hypot(Math.sqrt(after) * scale, Math.sqrt(before) * scaleBefore);
    return Math.abs(after * scale - before * scaleBefore) <= (this.head.deviates || 0) * error;
  }

  draw() {
    document.documentElement.classList.toggle("dark", this.dark);
    for (const tab of TABS) {
      $(tab).hidden = this.tab !== tab || (tab === "graph" && this.sandwiched >= 0);
      $(`tab-${tab}`).setAttribute("aria-selected", String(this.tab === tab));
    }
    $("sandwich").hidden = this.tab !== "graph" || this.sandwiched < 0;
    $("invert").setAttribute("aria-pressed", String(this.inverted));
    $("expression").setAttribute("aria-pressed", String(this.isExpression));
    $("up").setAttribute("aria-pressed", String(this.flame.upwards));
    $("tip").hidden = true;
    drawNarrowing(this);
    drawLegend(this);
    if (this.tab === "table") tabulate(this);
    else if (this.tab === "vanished") listVanished(this);
    else if (this.sandwiched >= 0) for (const graph of [this.callers, this.callees]) graph.draw(this.style());
    else this.flame.draw(this.style());
    this.remember();
  }

  select(graph, branch) {
    for (const other of this.graphs) other.selected = null;
    this.active = graph;
    graph.selected = branch;
    const [first, ...more] = branch ? this.describeBox(branch) : [""];
    const name = document.createElement("b");
    name.textContent = branch ? this.shortOf(branch.frame) : "";
    $("selected").replaceChildren(name, [first.slice(name.textContent.length), ...more.slice(-1)].join("  "));
    for (const id of ["copy", "act"]) $(id).disabled = !branch;
    $("look").disabled = !branch || branch.frame < 0;
  }

  zoom(graph, branch) {
    graph.focus = branch;
    this.select(graph, branch);
    this.draw();
  }

  // The stack of a branch as text, leaf first.
  stack(branch) {
    const names = [...branch.ancestry()].filter(({ frame }) => frame >= 0).map(({ frame }) => this.nameOf(frame));
    const leafFirst = branch instanceof Callers ? names.reverse() : names;
    return `${leafFirst.map(plain).join("\n")}\n`;
  }

  async copy(text = this.stack(this.active.selected)) {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // no clipboard on file:// in some browsers
      const area = document.body.appendChild(document.createElement("textarea"));
      area.value = text;
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    this.copied = text;
    $("selected").textContent = "copied";
  }

  openSandwich(frame) {
    const entry = this.model.functions[frame];
    if (!entry) return;
    const { callers, callees } = sandwich(this.view("weight"), frame);
    this.sandwiched = frame;
    this.callers.show(callers);
    this.callees.show(callees);
    $("sandwich-name").textContent = entry.short;
    $("sandwich-name").title = entry.name;
    $("sandwich-sum").textContent = this.weighed(callees);
  }

  // Entries of the menu of a box.
  menuOf(graph, branch) {
    const entries = [["Zoom to this", () => this.zoom(graph, branch)]];
    if (branch.frame >= 0) {
      const key = keyOf(this.model.functions[branch.frame]);
      const change = (set) => () => {
        set.add(key);
        this.weigh();
      };
      entries.push(
        ["Callers and callees", () => {
          this.openSandwich(branch.frame);
          this.draw();
        }],
        ["Only stacks with this function", change(this.only)],
        ["Hide this function", change(this.hidden)],
        ["", null],
        ["Copy the name", () => this.copy(this.nameOf(branch.frame))],
      );
      const { module, source } = this.model.functions[branch.frame];
      if (source) entries.push(["Copy the hottest source line", () => this.copy(source)]);
      if (source.startsWith("/")) entries.push(["Open it in VS Code", () => location.assign(`vscode://file${encodeURI(source)}`)]);
      if (module) entries.push(["Copy the file's path", () => this.copy(module)]);
    }
    entries.push(["Copy the stack", () => this.copy(this.stack(branch))]);
    return entries;
  }

  reset() {
    if (this.sandwiched >= 0) this.sandwiched = -1;
    else if (this.flame.focus !== this.flame.root) this.flame.focus = this.flame.root;
    else if ($("search").value) {
      $("search").value = "";
      this.search();
    } else if (this.only.size || this.hidden.size) {
      this.only.clear();
      this.hidden.clear();
      this.weigh();
    }
    this.select(this.flame, null);
    this.draw();
  }

  pickSpan(span) {
    this.span = this.timeline.span = span;
    const seconds = (slot) => ((slot * this.model.slotNs) / 1e9).toFixed(2);
    $("span").textContent = span ? `${seconds(span[0])} s to ${seconds(span[1])} s` : "";
    $("whole").hidden = !span;
    this.weigh();
  }

  // Write what is chosen into the address. A live page has other functions each second.
  remember() {
    if (this.head.live) return;
    const numbers = (keys) => [...this.numbers(keys)].join(".");
    writeAddress({
      q: $("search").value,
      expression: this.isExpression ? 1 : "",
      tab: this.tab,
      turned: this.inverted ? 1 : "",
      order: $("order").value,
      up: this.flame.upwards ? 1 : "",
      colour: this.chosenColour ?? "",
      zoom: this.flame.focus ? [...this.flame.focus.ancestry()].slice(0, -1).map(({ frame }) => frame).reverse().join(".") : "",
      sandwich: this.sandwiched < 0 ? "" : this.sandwiched,
      span: this.span?.join(".") ?? "",
      hide: numbers(this.hidden),
      only: numbers(this.only),
      fold: $("fold").value,
      without: $("kinds").value,
      widths: $("widths").value === "both" ? "" : $("widths").value,
      scale: $("scale").value === "parts" ? "" : $("scale").value,
      by: $("by").value === "function" ? "" : $("by").value,
      sort: this.sort.join(".") === this.usualSort ? "" : this.sort.join("."),
      columns: $("columns").value,
    }, this.filters.chosen);
  }

  restore() {
    const { state, chosen } = readAddress();
    const { functions } = this.model;
    const keys = (text) => new Set(numbersOf(text, functions.length).map((number) => keyOf(functions[number])));
    $("search").value = state.q;
    this.isExpression = Boolean(state.expression);
    this.tab = TABS.includes(state.tab) ? state.tab : "graph";
    this.inverted = Boolean(state.turned);
    this.flame.upwards = Boolean(state.up);
    this.chosenColour = state.colour || undefined;
    $("colour").value = this.colour;
    this.hidden = keys(state.hide);
    this.only = keys(state.only);
    for (const [id, value] of [
      ["order", state.order], ["fold", state.fold], ["kinds", state.without], ["widths", state.widths],
      ["scale", state.scale], ["by", state.by], ["columns", state.columns],
    ]) if ([...$(id).options].some((option) => option.value === value && value)) $(id).value = value;
    if (state.sort) this.sort = state.sort.split(".").slice(0, 2);
    this.timeline.bySecond = Boolean($("columns").value);
    this.filters.chosen = chosen;
    const span = numbersOf(state.span, this.model.slots + 1);
    if (span.length === 2 && span[0] < span[1]) {
      this.span = span;
      this.timeline.span = span;
    }
    this.wanted = state;
  }

  restoreZoom() {
    const { functions } = this.model;
    const path = numbersOf(this.wanted.zoom, functions.length).map((number) => keyOf(functions[number]));
    this.flame.focus = walkDown(this.flame.root, path, this.byKey);
    const [wanted] = numbersOf(this.wanted.sandwich, functions.length);
    if (wanted !== undefined) this.openSandwich(wanted);
    if (this.span) this.pickSpan(this.span);
    else this.draw();
  }
}

// What tells one function from another, also in a later second of a live page.
function keyOf({ name, module, kind }) {
  return `${name}\n${module}\n${kind}`;
}

// The branch at the end of a path of keys, or as far as it goes.
function walkDown(root, path, byKey) {
  let at = root;
  for (const key of path) {
    const number = byKey.get(key);
    const next = at.children.find(({ frame }) => frame === number);
    if (!next) break;
    at = next;
  }
  return at;
}
