// The flat table: own and total weight by function, module, process, thread, CPU, cgroup, kind.

const SHOWN = 500;

const OF_FUNCTION = {
  function: (each) => each.name,
  module: (each) => each.module || "[no module]",
  kind: (each) => each.kind,
};

const OF_LABEL = {
  process: (each) => `${each.comm} (${each.pid})`,
  comm: (each) => each.comm,
  thread: (each) => `${each.comm} (${each.pid}/${each.tid})`,
  cpu: (each) => `CPU ${each.cpu}`,
  cgroup: (each) => each.cgroup || "[no cgroup]",
  state: (each) => each.state || "[no state]",
  time: (each) => each.time || "[no kind]",
};

// Lines { name, module, own, total, frame } of a grouping, unsorted.
function tableLines(model, by) {
  return by in OF_FUNCTION ? functionLines(model, by) : labelLines(model, OF_LABEL[by]);
}

function functionLines(model, by) {
  const { functions } = model;
  const names = new Map();
  const number = (name) => {
    if (!names.has(name)) names.set(name, names.size);
    return names.get(name);
  };
  const single = by === "function";
  const keys = Int32Array.from(functions, (each, i) => (single ? i : number(OF_FUNCTION[by](each))));
  const count = single ? functions.length : names.size;
  const { own, total } = model.byFunction(keys, count);
  const list = single ? functions.map((each) => each.name) : [...names.keys()];
  const lines = [];
  for (let key = 0; key < count; key++) {
    if (!total[key] || (single && functions[key].kind === "process")) continue;
    lines.push({
      name: list[key],
      module: single ? [functions[key].module, functions[key].why].filter(Boolean).join(": ") : "",
      own: own[key],
      total: total[key],
      frame: single ? key : -1,
    });
  }
  return by === "function" ? lines : lines.filter((each) => each.name !== "process");
}

function labelLines(model, name) {
  const found = new Map();
  model.weights.forEach((weight, row) => {
    if (!weight) return;
    const key = name(model.labels[model.rows.label[row]]);
    found.set(key, (found.get(key) ?? 0) + weight);
  });
  return [...found].map(([key, weight]) => (
    { name: key, module: "", own: weight, total: weight, frame: -1 }
  ));
}

// Fill a <tbody>; `pick(frame)` is called for a function that is chosen.
function fillTable(body, lines, { whole, order, test, amount, pick }) {
  const kept = test ? lines.filter((each) => test(each)) : lines;
  kept.sort(order === "name"
    ? (a, b) => (a.name < b.name ? -1 : 1)
    : (a, b) => b[order] - a[order] || b.total - a.total);
  const percent = (weight) => `${((100 * weight) / (whole || 1)).toFixed(2)}%`;
  const rows = kept.slice(0, SHOWN).map((line) => {
    const row = document.createElement("tr");
    const cells = [
      amount(line.own), percent(line.own), amount(line.total), percent(line.total), "", line.module,
    ];
    for (const text of cells) row.insertCell().textContent = text;
    row.style.setProperty("--part", percent(line.own));
    const name = document.createElement(line.frame < 0 ? "span" : "button");
    name.textContent = line.name;
    if (line.frame >= 0) name.addEventListener("click", () => pick(line.frame));
    row.cells[4].append(name);
    return row;
  });
  body.replaceChildren(...rows);
  return { shown: rows.length, all: kept.length };
}
