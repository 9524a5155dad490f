// What the page says about weights and boxes.

const UNITS = {
  ns: [[1e9, "s"], [1e6, "ms"], [0, "us"]],
  bytes: [[1e9, "GB"], [1e6, "MB"], [1e4, "kB"]],
};

class Wording {
  amount(weight) {
    const units = UNITS[this.head.unit]?.find(([factor]) => weight >= factor);
    if (units) return `${(weight / (units[0] || 1e3)).toFixed(2)} ${units[1]}`;
    return (Math.round(weight * 1000) / 1000).toLocaleString("en");
  }

  counted(weight) {
    const { unit } = this.head;
    const amount = this.amount(weight);
    if (amount.includes(" ")) return amount; // it has a unit
    return `${amount} ${weight === 1 ? unit.replace(/s$/, "") : unit}`;
  }

  // What was spent in a second: CPUs, where samples come at a rate.
  rate(weight) {
    const { frequency_hz: hertz, cpus } = this.head;
    if (!hertz) return `${this.counted(weight)} a second`;
    return `${(weight / hertz).toFixed(2)}${cpus ? ` of ${cpus}` : ""} CPUs`;
  }

  nameOf(frame) {
    return frame < 0 ? "all" : this.model.functions[frame].name;
  }

  // The name as people say it, without allocators and the like; `nameOf` is all of it.
  shortOf(frame) {
    return frame < 0 ? "all" : this.model.functions[frame].short;
  }

  weighed(branch) {
    const percent = (part) => `${(100 * part).toFixed(2)}%`;
    if (!this.model.compares) return `${this.counted(branch.weight)}, ${percent(branch.weight / (this.model.total[0] || 1))}`;
    const [after, before] = [branch.weight * this.afterScale, branch.before * this.beforeScale];
    const chance = after !== before && this.isChance(branch.weight, branch.before) ? ", by chance" : "";
    return `before ${percent(before)}, after ${percent(after)}: ${after >= before ? "+" : ""}${percent(after - before)}${chance}`;
  }

  // Lines about a box.
  describeBox(branch) {
    const lines = [`${this.shortOf(branch.frame)}  ${this.weighed(branch)}`];
    if (branch.frame < 0) return lines;
    const { name, short, module, kind, why } = this.model.functions[branch.frame];
    if (name !== short) lines.push(name);
    lines.push([kind, module, why].filter(Boolean).join(" · "));
    return lines;
  }

  // The same with what it spent itself and its share of what is around it.
  describeMore(graph, branch) {
    const lines = this.describeBox(branch);
    const share = (part, of) => `${((100 * part) / (of || 1)).toFixed(1)}%`;
    const parts = [];
    if (branch.own) parts.push(`self ${this.counted(branch.own)}, ${share(branch.own, branch.weight)} of it`);
    if (branch.parent && branch.parent.frame >= 0) {
      parts.push(`${share(branch.weight, branch.parent.weight)} of ${this.shortOf(branch.parent.frame)}`);
    }
    const { focus } = graph;
    if (focus && focus !== graph.root && focus !== branch.parent && focus !== branch) {
      parts.push(`${share(branch.weight, focus.weight)} of the zoomed ${this.shortOf(focus.frame)}`);
    }
    if (parts.length) lines.push(parts.join(" · "));
    if (this.model.states.length && branch.states) {
      lines.push(graph.statesOf(branch).map(([state, weight]) => `${state} ${share(weight, branch.weight)}`).join(" · "));
    }
    return lines;
  }
}
