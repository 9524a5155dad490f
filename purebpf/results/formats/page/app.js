// The page: what is chosen, and what follows from it.

const $ = (id) => document.getElementById(id);

class App {
  constructor() {
    this.flame = new Graph($("flame"));
    this.callers = new Graph($("callers"), { upwards: true });
    this.callees = new Graph($("callees"));
    this.graphs = [this.flame, this.callers, this.callees];
    this.timeline = new Timeline($("heat"), (span) => this.pickSpan(span));
    this.chosen = {};
    this.span = null;
    this.inverted = false;
    this.sandwiched = -1;
    this.tab = "graph";
    this.dark = matchMedia("(prefers-color-scheme: dark)").matches;
    this.listen();
  }

  // Take a new profile, and keep what was chosen before.
  show(model, head) {
    this.model = model;
    this.head = head;
    for (const graph of this.graphs) graph.colours.clear();
    this.describe();
    this.offerFilters();
    this.weigh();
  }

  describe() {
    const { head } = this;
    $("title").textContent = head.title || "Profile";
    $("about").textContent = Object.entries(head.about)
      .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(" ") : value}`)
      .join(" · ");
    const { lines, complete } = quality(head);
    const list = document.createElement("ul");
    for (const line of lines.slice(1)) list.appendChild(document.createElement("li")).textContent = line;
    $("quality").replaceChildren(lines[0], ...(lines.length > 1 ? [list] : []));
    $("quality").classList.toggle("loss", !complete);
    $("widths-label").hidden = $("tab-vanished").hidden = !head.compare;
  }

  // A <select> for each label that has more than one value.
  offerFilters() {
    const kept = [];
    for (const [kind, name] of Object.entries(OF_LABEL)) {
      const values = [...new Set(this.model.labels.map(name))].sort();
      if (values.length < 2 || (kind === "thread" && !this.model.labels.some((each) => each.tid))) {
        if (!values.includes(this.chosen[kind])) delete this.chosen[kind];
        continue;
      }
      const select = document.createElement("select");
      select.id = `filter-${kind}`;
      select.append(new Option(`every ${kind}`, ""), ...values.map((value) => new Option(value, value)));
      select.value = this.chosen[kind] ?? "";
      select.addEventListener("change", () => {
        this.chosen[kind] = select.value;
        this.weigh();
      });
      kept.push(select);
    }
    $("filters").replaceChildren(...kept);
    const by = $("by").value;
    const offered = [...Object.keys(OF_FUNCTION), ...Object.keys(OF_LABEL)];
    $("by").replaceChildren(...offered.map((each) => new Option(each, each)));
    $("by").value = by || "function";
  }

  weigh() {
    const { model } = this;
    const wanted = Uint8Array.from(model.labels, (label) => (
      Object.entries(this.chosen).every(([kind, value]) => !value || OF_LABEL[kind](label) === value)
        ? 1 : 0
    ));
    model.weigh(wanted, this.span);
    $("time").hidden = !model.slots;
    if (model.slots) {
      this.timeline.span = this.span;
      this.timeline.draw(model.slotTotals(wanted), model.slotNs, this.dark);
    }
    this.grow();
  }

  // New trees; the focus follows by the names of its path.
  grow() {
    const path = this.flame.focus ? this.namesTo(this.flame.focus) : [];
    const root = this.inverted ? bottomUp(this.model) : topDown(this.model);
    let focus = root;
    for (const name of path) {
      const next = focus.children.find((each) => this.nameOf(each.frame) === name);
      if (!next) break;
      focus = next;
    }
    this.flame.show(root, focus);
    if (this.sandwiched >= 0) this.openSandwich(this.sandwiched);
    this.select(this.flame, null);
    this.search();
  }

  namesTo(branch) {
    return [...branch.ancestry()].slice(0, -1).map((each) => this.nameOf(each.frame)).reverse();
  }

  nameOf(frame) {
    return frame < 0 ? "all" : this.model.functions[frame].name;
  }

  search() {
    const text = $("search").value;
    this.test = null;
    this.matched = null;
    $("search").classList.remove("wrong");
    $("found").textContent = "";
    if (text) {
      try {
        const wanted = new RegExp(text, /[A-Z]/.test(text) ? "u" : "iu");
        this.test = (each) => wanted.test(each.name) || wanted.test(each.module ?? "");
      } catch {
        $("search").classList.add("wrong");
        $("found").textContent = "no regular expression";
      }
    }
    if (this.test) {
      this.matched = this.model.matching(this.test);
      const part = this.model.matchedWeight(this.matched) / (this.model.total[0] || 1);
      $("found").textContent = `${(100 * part).toFixed(2)}% matched`;
    }
    this.draw();
  }

  style() {
    const { model } = this;
    const style = {
      by: $("colour").value,
      dark: this.dark,
      matched: this.matched,
      size: (branch) => branch.weight,
      name: (frame) => this.nameOf(frame),
      function: (frame) => model.functions[frame],
    };
    if (model.compares) {
      const kind = $("widths").value;
      style.size = {
        weight: (branch) => branch.weight * this.afterScale,
        before: (branch) => branch.before * this.beforeScale,
        both: (branch) => this.greater(branch),
      }[kind];
      style.change = (branch) => this.change(branch);
    }
    return style;
  }

  // Weights in parts of everything, so that a longer run does not look slower.
  get afterScale() {
    return 1 / (this.model.total[0] || 1);
  }

  get beforeScale() {
    return 1 / (this.model.totalBefore[0] || 1);
  }

  // As wide as both of its own parts and its children need.
  greater(branch) {
    branch.wide ??= Math.max(
      branch.weight * this.afterScale,
      branch.before * this.beforeScale,
      branch.weight * this.afterScale + branch.before * this.beforeScale > 1e-4
        ? branch.children.reduce((sum, each) => sum + this.greater(each), 0)
        : 0,
    );
    return branch.wide;
  }

  change(branch) {
    const [after, before] = [branch.weight * this.afterScale, branch.before * this.beforeScale];
    return (after - before) / (Math.max(after, before) || 1);
  }

  draw() {
    document.documentElement.classList.toggle("dark", this.dark);
    for (const tab of ["graph", "table", "vanished"]) {
      $(tab).hidden = this.tab !== tab || (tab === "graph" && this.sandwiched >= 0);
      $(`tab-${tab}`).setAttribute("aria-selected", String(this.tab === tab));
    }
    $("sandwich").hidden = this.tab !== "graph" || this.sandwiched < 0;
    $("invert").setAttribute("aria-pressed", String(this.inverted));
    if (this.tab === "table") this.tabulate();
    else if (this.tab === "vanished") this.listVanished();
    else if (this.sandwiched >= 0) for (const graph of [this.callers, this.callees]) graph.draw(this.style());
    else this.flame.draw(this.style());
  }

  tabulate() {
    const by = $("by").value;
    const { shown, all } = fillTable($("body"), tableLines(this.model, by), {
      whole: this.model.total[0],
      order: $("order").value,
      test: this.test,
      amount: (weight) => this.amount(weight),
      pick: (frame) => {
        this.tab = "graph";
        this.openSandwich(frame);
        this.draw();
      },
    });
    $("lines").textContent = shown < all ? `the first ${shown} of ${all}` : `${all}`;
  }

  listVanished() {
    const { model } = this;
    const keys = Int32Array.from(model.functions, (_, i) => i);
    const [after, before] = [new Float64Array(keys.length), new Float64Array(keys.length)];
    model.outermost(keys, keys.length, (node, key) => {
      after[key] += model.total[node];
      before[key] += model.totalBefore[node];
    });
    const gone = [...keys].filter((key) => before[key] && !after[key]).sort((a, b) => before[b] - before[a]);
    $("vanished-body").replaceChildren(...gone.slice(0, SHOWN).map((key) => {
      const row = document.createElement("tr");
      const { name, module } = model.functions[key];
      const percent = `${(100 * before[key] * this.beforeScale).toFixed(2)}%`;
      for (const text of [this.amount(before[key]), percent, name, module]) {
        row.insertCell().textContent = text;
      }
      return row;
    }));
  }

  amount(weight) {
    if (this.head.unit !== "ns") return `${Math.round(weight * 1000) / 1000}`;
    const [factor, unit] = weight < 1e6 ? [1e3, "us"] : weight < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    return `${(weight / factor).toFixed(2)} ${unit}`;
  }

  // A line about a box.
  told(branch) {
    const whole = this.model.total[0] || 1;
    const part = `${((100 * branch.weight) / whole).toFixed(2)}%`;
    const counted = `${this.amount(branch.weight)} ${this.head.unit === "ns" ? "" : this.head.unit}`;
    const lines = [`${this.nameOf(branch.frame)}  ${counted.trim()}, ${part}`];
    if (this.model.compares) {
      const [after, before] = [branch.weight * this.afterScale, branch.before * this.beforeScale];
      const sign = after >= before ? "+" : "";
      lines[0] = `${this.nameOf(branch.frame)}  before ${(100 * before).toFixed(2)}%, `
        + `after ${(100 * after).toFixed(2)}%: ${sign}${(100 * (after - before)).toFixed(2)}%`;
    }
    if (branch.frame >= 0) {
      const { module, kind, why } = this.model.functions[branch.frame];
      lines.push([kind, module, why].filter(Boolean).join(" · "));
    }
    return lines;
  }

  select(graph, branch) {
    for (const each of this.graphs) each.selected = null;
    this.active = graph;
    graph.selected = branch;
    $("selected").textContent = branch ? this.told(branch).join("  ") : "";
    $("copy").disabled = !branch;
    $("look").disabled = !branch || branch.frame < 0;
  }

  zoom(graph, branch) {
    graph.focus = branch;
    this.select(graph, branch);
    this.draw();
  }

  // The stack of a branch as text, leaf first.
  stack(branch) {
    const names = [...branch.ancestry()].filter((each) => each.frame >= 0).map((each) => this.nameOf(each.frame));
    const leafFirst = branch instanceof Callers ? names.reverse() : names;
    return `${leafFirst.map(plain).join("\n")}\n`;
  }

  async copy() {
    const text = this.stack(this.active.selected);
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
    const name = this.model.functions[frame];
    if (!name) return;
    const { callers, callees } = sandwich(this.model, frame);
    this.sandwiched = frame;
    this.callers.show(callers);
    this.callees.show(callees);
    $("sandwich-name").textContent = name.name;
    $("sandwich-sum").textContent = this.told(callees)[0].slice(name.name.length);
  }

  reset() {
    if (this.sandwiched >= 0) this.sandwiched = -1;
    else if (this.flame.focus !== this.flame.root) this.flame.focus = this.flame.root;
    else if ($("search").value) {
      $("search").value = "";
      this.search();
    }
    this.select(this.flame, null);
    this.draw();
  }

  pickSpan(span) {
    this.span = span;
    const seconds = (slot) => ((slot * this.model.slotNs) / 1e9).toFixed(2);
    $("span").textContent = span ? `${seconds(span[0])} s to ${seconds(span[1])} s` : "";
    $("whole").hidden = !span;
    this.weigh();
  }

  // Arrow keys: up and down the tree, left and right among siblings.
  walk(key) {
    const graph = this.active;
    const at = graph.selected ?? graph.focus;
    const siblings = at.parent?.children ?? [at];
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    let to = at;
    if (step) to = siblings[siblings.indexOf(at) + step] ?? at;
    else if (key === "ArrowUp") to = at.parent ?? at;
    else to = at.children.reduce((most, each) => (most && most.weight >= each.weight ? most : each), null) ?? at;
    this.select(graph, to);
    if (![...to.ancestry()].includes(graph.focus)) graph.focus = to.parent ?? to;
    this.draw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
    if (event.key === "Escape") {
      document.activeElement.blur();
      this.reset();
      return;
    }
    if (["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
    const selected = this.active.selected;
    const act = {
      "/": () => $("search").focus(),
      i: () => $("invert").click(),
      t: () => $(this.tab === "table" ? "tab-graph" : "tab-table").click(),
      d: () => $("theme").click(),
      p: () => $("pause").click(),
      "?": () => $("keys").showModal(),
      c: () => selected && this.copy(),
      s: () => $("look").click(),
      Enter: () => selected && this.zoom(this.active, selected),
    }[event.key] ?? (event.key.startsWith("Arrow") ? () => this.walk(event.key) : null);
    const pressing = event.key === "Enter" && event.target.tagName === "BUTTON";
    if (!act || this.tab !== "graph" && event.key.startsWith("Arrow") || pressing) return;
    event.preventDefault();
    act();
  }

  listen() {
    for (const graph of this.graphs) this.listenTo(graph);
    const on = (id, kind, act) => $(id).addEventListener(kind, act);
    for (const tab of ["graph", "table", "vanished"]) {
      on(`tab-${tab}`, "click", () => {
        this.tab = tab;
        this.draw();
      });
    }
    on("search", "input", () => this.search());
    on("invert", "click", () => {
      this.inverted = !this.inverted;
      this.flame.focus = null;
      this.grow();
    });
    on("reset", "click", () => this.reset());
    for (const id of ["colour", "widths"]) {
      on(id, "change", () => {
        this.flame.colours.clear();
        this.draw();
      });
    }
    for (const id of ["by", "order"]) on(id, "change", () => this.draw());
    on("theme", "click", () => {
      this.dark = !this.dark;
      for (const graph of this.graphs) graph.colours.clear();
      this.weigh();
    });
    on("help", "click", () => $("keys").showModal());
    on("save", "change", async () => {
      const kind = $("save").value;
      $("save").value = "";
      if (kind) await save(kind, this.model, this.head);
    });
    on("copy", "click", () => this.copy());
    on("look", "click", () => {
      const frame = this.active.selected?.frame ?? -1;
      if (frame < 0) return;
      this.openSandwich(frame);
      this.draw();
    });
    on("sandwich-close", "click", () => this.reset());
    on("whole", "click", () => this.pickSpan(null));
    document.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.model && this.draw()).observe(document.body);
  }

  listenTo(graph) {
    const { canvas } = graph;
    canvas.addEventListener("click", (event) => {
      const box = graph.at(event.offsetX, event.offsetY);
      if (box) this.zoom(graph, box.branch);
    });
    canvas.addEventListener("pointermove", (event) => {
      const box = graph.at(event.offsetX, event.offsetY);
      $("tip").hidden = !box;
      if (!box) return;
      $("tip").textContent = this.told(box.branch).join("\n");
      $("tip").style.left = `${Math.min(event.clientX + 12, innerWidth - 320)}px`;
      $("tip").style.top = `${event.clientY + 16}px`;
    });
    canvas.addEventListener("pointerleave", () => ($("tip").hidden = true));
  }
}

// What the numbers do not include, in sentences; the first stands alone.
function quality({ loss, total, unit, hints }) {
  const lost = loss.causes.filter((each) => each.lost);
  const missed = loss.missed > loss.tolerance;
  const complete = !missed && !lost.length;
  const unknown = `${loss.unknown.percent.toFixed(1)}% of frames have no name`;
  const sum = unit === "ns" ? `${(total / 1e9).toFixed(3)} s` : `${total} ${unit}`;
  const lines = [`${sum}. ${complete ? "Nothing was lost" : "Incomplete"}; ${unknown}.`];
  if (missed) lines.push(`missed: ${loss.missed} of ${loss.expected} never came`);
  for (const each of lost) lines.push(`${each.name}: ${each.lost}. ${each.what}`);
  for (const { reason, module, percent } of loss.unknown.reasons) {
    lines.push(`unknown, ${percent.toFixed(1)}%: ${reason}${module ? ` [${module}]` : ""}`);
  }
  for (const hint of hints ?? []) lines.push(`hint: ${hint}`);
  return { lines, complete };
}

async function start() {
  const head = JSON.parse($("head").textContent);
  const app = new App();
  window.purebpf = app;
  if (head.live) {
    startLive(app, head);
  } else {
    const rows = await unpack(head, $("bytes").textContent);
    app.show(new Model(unpackFunctions(head), head.labels, rows, head.slot_ns), head);
  }
  document.documentElement.dataset.ready = "yes";
}

function startLive(app, head) {
  const live = new Live((model, last, seconds) => {
    app.show(model, { ...last, total: model.rows.weight.reduce((a, b) => a + b, 0) });
    $("live-status").textContent = `${seconds} s shown`;
    document.documentElement.dataset.seconds = last.second;
  });
  live.status = (text) => ($("live-status").textContent = text);
  $("live").hidden = false;
  $("title").textContent = head.title;
  const query = new URLSearchParams(location.search);
  const token = `token=${encodeURIComponent(query.get("token") ?? "")}`;
  $("snapshot").href = `/snapshot.html?${token}`;
  $("pause").addEventListener("click", () => {
    live.paused = !live.paused;
    $("pause").textContent = live.paused ? "Go on" : "Pause";
    if (!live.paused) live.refresh();
  });
  $("window").addEventListener("change", () => {
    live.windowS = Number($("window").value);
    live.refresh();
  });
  live.listen(`/events?${token}`);
}

start();
