// The flat table: own and total weight by function, module, process, thread, CPU, cgroup, kind.

const SHOWN = 500;
const GROUPING_KINDS = new Set(["process", "thread", "divider"]); // frames that are no functions

const OF_FUNCTION = {
  function: ({ name }) => name,
  module: ({ module }) => module || "[no module]",
  kind: ({ kind }) => kind,
};

const OF_LABEL = {
  process: ({ comm, pid, process }) => `${process || comm} (${pid})`,
  comm: ({ comm }) => comm,
  thread: ({ comm, pid, tid }) => `${comm} (${pid}/${tid})`,
  cpu: ({ cpu }) => `CPU ${cpu}`,
  cgroup: ({ cgroup }) => cgroup || "[no cgroup]",
  state: (label) => stateOf(label),
};

// Columns of the table; `value` is what it sorts by, `text` what it shows.
function tableColumns({ compares, amount, part, partBefore, isChance }) {
  const percent = (share) => `${(100 * share).toFixed(2)}%`;
  const signed = (share) => `${share >= 0 ? "+" : ""}${(100 * share).toFixed(2)}%`;
  const columns = [
    { id: "own", title: "self", value: ({ own }) => own, text: ({ own }) => amount(own) },
    { id: "own-part", title: "%", value: ({ own }) => own, text: ({ own }) => percent(part(own)) },
    { id: "total", title: "total", value: ({ total }) => total, text: ({ total }) => amount(total) },
    { id: "total-part", title: "%", value: ({ total }) => total, text: ({ total }) => percent(part(total)) },
  ];
  const change = ({ total, totalBefore }) => part(total) - partBefore(totalBefore);
  const ofChance = ({ total, totalBefore }) => total !== totalBefore && isChance(total, totalBefore);
  if (compares) {
    columns.push(
      {
        id: "before", title: "before", value: ({ totalBefore }) => totalBefore,
        text: ({ totalBefore }) => percent(partBefore(totalBefore)),
      },
      {
        id: "change", title: "change", value: (line) => change(line) * (ofChance(line) ? 1e-6 : 1), // behind what changed
        text: (line) => (ofChance(line) ? "by chance" : signed(change(line))),
      },
    );
  }
  columns.push(
    { id: "name", title: "name", isText: true, value: ({ short, name }) => short ?? name },
    { id: "module", title: "module", isText: true, value: ({ module }) => module, text: ({ module }) => basename(module) },
  );
  return columns;
}

function basename(path) {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}

// Lines { name, module, own, total, ownBefore, totalBefore, frame } of a grouping, unsorted.
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
  const keys = Int32Array.from(functions, (entry, i) => (single ? i : number(OF_FUNCTION[by](entry))));
  const count = single ? functions.length : names.size;
  const { own, total, ownBefore, totalBefore } = model.byFunction(keys, count);
  const list = single ? functions.map(({ name }) => name) : [...names.keys()];
  const lines = [];
  for (let key = 0; key < count; key++) {
    if (!total[key] && !totalBefore[key]) continue;
    if (single ? GROUPING_KINDS.has(functions[key].kind) : by === "kind" && GROUPING_KINDS.has(list[key])) continue;
    lines.push({
      name: list[key],
      short: single ? functions[key].short : list[key],
      module: single ? functions[key].module : "",
      why: single ? functions[key].why : "",
      ...{ own: own[key], total: total[key], ownBefore: ownBefore[key], totalBefore: totalBefore[key] },
      frame: single ? key : -1,
    });
  }
  return lines;
}

function labelLines(model, name) {
  const lines = new Map();
  model.weights.forEach((weight, row) => {
    const before = model.compares ? model.weightsBefore[row] : 0;
    if (!weight && !before) return;
    const key = name(model.labels[model.rows.label[row]]);
    if (!lines.has(key)) {
      lines.set(key, { name: key, module: "", why: "", own: 0, total: 0, ownBefore: 0, totalBefore: 0, frame: -1 });
    }
    const line = lines.get(key);
    line.own = line.total += weight;
    line.ownBefore = line.totalBefore += before;
  });
  return [...lines.values()];
}

// Fill a <table>; `pick(frame)` is called for a function that is chosen, `sortBy(id)` for a column.
function fillTable(table, lines, { columns, sort, test, part, pick, sortBy }) {
  const kept = test ? lines.filter((line) => test(line)) : lines;
  const [id, way] = sort;
  const { value, isText } = columns.find((column) => column.id === id) ?? columns[0];
  const sign = rises(way, isText) ? 1 : -1;
  kept.sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    return sign * (left < right ? -1 : left > right ? 1 : 0) || b.total - a.total || (a.name < b.name ? -1 : 1);
  });
  table.tHead.replaceChildren(headRow(columns, sort, sortBy));
  table.tBodies[0].replaceChildren(...kept.slice(0, SHOWN).map((line) => lineRow(line, columns, part, pick)));
  return { shown: Math.min(kept.length, SHOWN), all: kept.length };
}

// "down" is the usual way: text from A on, numbers from the greatest on.
function rises(way, isText) {
  return (way === "up") !== Boolean(isText);
}

function headRow(columns, [id, way], sortBy) {
  const row = document.createElement("tr");
  for (const column of columns) {
    const cell = row.appendChild(document.createElement("th"));
    cell.scope = "col";
    cell.className = column.isText ? `text ${column.id}` : column.id;
    if (column.id === id) {
      cell.setAttribute("aria-sort", rises(way, column.isText) ? "ascending" : "descending");
    }
    const button = cell.appendChild(document.createElement("button"));
    button.textContent = column.title;
    button.addEventListener("click", () => sortBy(column.id));
  }
  return row;
}

function lineRow(line, columns, part, pick) {
  const row = document.createElement("tr");
  row.style.setProperty("--part", `${(100 * part(line.own)).toFixed(2)}%`);
  for (const column of columns) {
    const cell = row.insertCell();
    cell.className = column.id;
    if (column.id === "name") cell.append(nameOf(line, pick));
    else cell.textContent = column.text(line);
    if (column.id === "module") cell.title = [line.module, line.why].filter(Boolean).join(": ");
  }
  return row;
}

// One line, cut where it is too long; the whole name on a second click or by the pointer.
function nameOf(line, pick) {
  const name = document.createElement(line.frame < 0 ? "span" : "button");
  name.textContent = line.short ?? line.name;
  name.title = line.name;
  if (line.frame >= 0) name.addEventListener("click", () => pick(line.frame));
  return name;
}
