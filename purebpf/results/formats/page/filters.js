// What is counted: everything, or what has one value of a label. Processes and their threads are
// one list to search, other labels have a <select> each.

const NOT_IDLE = "all but idle"; // of states

class Filters {
  // `onChange()` is called when something else is chosen.
  constructor(element, onChange) {
    this.element = element;
    this.onChange = onChange;
    this.chosen = {};
    this.labels = [];
  }

  // For each label 1 if it passes.
  wanted(labels) {
    const rules = Object.entries(this.chosen).filter(([kind, value]) => value && kind in OF_LABEL);
    return Uint8Array.from(labels, (label) => (
      rules.every(([kind, value]) => (value === NOT_IDLE ? "idle" !== stateOf(label) : OF_LABEL[kind](label) === value)) ? 1 : 0
    ));
  }

  choose(kind, value) {
    if (kind === "process") delete this.chosen.thread;
    if (value) this.chosen[kind] = value;
    else delete this.chosen[kind];
    this.offer(this.model);
    this.onChange();
  }

  // A control for each label that has more than one value.
  offer(model) {
    this.model = model;
    const open = this.element.querySelector("details")?.open;
    const typed = this.element.querySelector("input")?.value ?? "";
    const controls = [];
    for (const [kind, name] of Object.entries(OF_LABEL)) {
      const values = [...new Set(model.labels.map(name))].sort();
      const few = values.length < 2;
      if (kind === "state" && !few && values.includes("idle")) values.unshift(NOT_IDLE);
      if (few && this.chosen[kind] && !values.includes(this.chosen[kind])) delete this.chosen[kind];
      if (kind === "thread" || few) continue;
      controls.push(kind === "process" ? this.processes(model, open, typed) : this.select(kind, values));
    }
    this.element.replaceChildren(...controls);
  }

  select(kind, values) {
    const { comm, cpu, cgroup } = { comm: "thread name", cpu: "CPU", cgroup: "cgroup" };
    const title = { comm, cpu, cgroup }[kind] ?? kind;
    const select = document.createElement("select");
    select.id = `filter-${kind}`;
    select.setAttribute("aria-label", `only this ${title}`);
    select.append(new Option(`any ${title}`, ""), ...values.map((value) => new Option(value, value)));
    select.value = this.chosen[kind] ?? "";
    select.addEventListener("change", () => this.choose(kind, select.value));
    return select;
  }

  processes(model, open, typed) {
    const details = document.createElement("details");
    details.id = "filter-process";
    details.className = "popup";
    details.open = Boolean(open);
    const summary = details.appendChild(document.createElement("summary"));
    summary.textContent = this.chosen.thread ?? this.chosen.process ?? "any process";
    const panel = details.appendChild(document.createElement("div"));
    const field = panel.appendChild(document.createElement("input"));
    field.type = "search";
    field.value = typed;
    field.placeholder = "find a process or thread";
    field.setAttribute("aria-label", "find a process or thread");
    const list = panel.appendChild(document.createElement("ul"));
    const fill = () => list.replaceChildren(...this.processLines(model, field.value));
    field.addEventListener("input", fill);
    details.addEventListener("toggle", () => {
      if (!details.open) return;
      fill();
      field.focus();
    });
    details.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      details.open = false;
      summary.focus();
    });
    if (details.open) fill();
    return details;
  }

  // Processes, the heaviest first, each with its threads; all weights, whatever is chosen.
  processLines(model, typed) {
    const found = new Map();
    model.rows.weight.forEach((weight, row) => {
      const label = model.labels[model.rows.label[row]];
      const name = OF_LABEL.process(label);
      if (!found.has(name)) found.set(name, { weight: 0, threads: new Map() });
      const process = found.get(name);
      process.weight += weight;
      if (!label.tid) return;
      const thread = OF_LABEL.thread(label);
      process.threads.set(thread, (process.threads.get(thread) ?? 0) + weight);
    });
    const whole = [...found.values()].reduce((sum, { weight }) => sum + weight, 0) || 1;
    const heaviest = (a, b) => b[1] - a[1];
    const wanted = typed.toLowerCase();
    const has = (text) => text.toLowerCase().includes(wanted);
    const lines = wanted ? [] : [this.line("process", "", "any process", 1, 0)];
    for (const [name, { weight, threads }] of [...found].sort((a, b) => b[1].weight - a[1].weight)) {
      const shown = [...threads].sort(heaviest).filter(([thread]) => has(thread) || has(name));
      if (!has(name) && !shown.length) continue;
      lines.push(this.line("process", name, name, weight / whole, 0));
      if (threads.size > 1 || wanted) {
        for (const [thread, part] of shown) lines.push(this.line("thread", thread, thread, part / whole, 1));
      }
      if (lines.length > SHOWN) break;
    }
    return lines;
  }

  line(kind, value, text, part, depth) {
    const item = document.createElement("li");
    const button = item.appendChild(document.createElement("button"));
    button.style.setProperty("--part", `${(100 * part).toFixed(2)}%`);
    button.style.paddingLeft = `${8 + 16 * depth}px`;
    button.setAttribute("aria-pressed", String((this.chosen[kind] ?? "") === value));
    button.append(text, Object.assign(document.createElement("span"), { textContent: `${(100 * part).toFixed(1)}%` }));
    button.addEventListener("click", () => {
      this.element.querySelector("details").open = false;
      this.choose(kind, value);
    });
    return item;
  }
}
