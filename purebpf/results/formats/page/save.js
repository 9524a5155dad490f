// What the page shows, as files for other programs.

function folded(model) {
  const lines = new Map();
  model.weights.forEach((weight, row) => {
    if (!weight) return;
    const path = foldedPath(model, model.path(model.node[row])).join(";");
    lines.set(path, (lines.get(path) ?? 0) + weight);
  });
  return [...lines].map(([path, weight]) => `${path} ${Math.round(weight)}\n`).join("");
}

// Names from root to leaf. Threads are left out, and a waker stands behind `--`.
function foldedPath(model, frames) {
  return frames.map((frame) => model.functions[frame])
    .filter(({ kind }) => kind !== "thread")
    .map(({ kind, name }) => (kind === "divider" ? "--" : plain(name)));
}

// A name that cannot break a line of folded stacks, as formats/folded.py writes it.
function plain(name) {
  // eslint-disable-next-line no-control-regex
  return name.replace(/[\x00-\x1f\x7f]/g, "?").replaceAll(";", ":");
}

function speedscope(model, head) {
  const samples = [];
  const weights = [];
  model.weights.forEach((weight, row) => {
    if (!weight) return;
    samples.push(model.path(model.node[row]));
    weights.push(weight);
  });
  return JSON.stringify({
    $schema: "https://www.speedscope.app/file-format-schema.json",
    exporter: "purebpf",
    name: head.title,
    shared: {
      frames: model.functions.map(({ name, module }) => (module ? { name, file: module } : { name })),
    },
    profiles: [{
      type: "sampled",
      name: head.title,
      unit: { ns: "nanoseconds", bytes: "bytes" }[head.unit] ?? "none",
      startValue: 0,
      endValue: weights.reduce((a, b) => a + b, 0),
      samples,
      weights,
    }],
  });
}

// pprof's profile.proto: formats/pprof.py in short. Functions are the places here: the page does
// not have their addresses.
function pprof(model, head) {
  const strings = new Map([["", 0]]);
  const string = (text) => {
    if (!strings.has(text)) strings.set(text, strings.size);
    return strings.get(text);
  };
  const utf8 = new TextEncoder();
  const varint = (value) => {
    const bytes = [];
    for (; value > 127; value = Math.floor(value / 128)) bytes.push(value % 128 | 128);
    bytes.push(value);
    return bytes;
  };
  const integer = (field, value) => (value ? [...varint(field * 8), ...varint(value)] : []);
  const message = (field, bytes) => [...varint(field * 8 + 2), ...varint(bytes.length), ...bytes];
  const parts = [];
  const write = (field, bytes) => parts.push(Uint8Array.from(message(field, bytes)));
  const units = { ns: ["time", "nanoseconds"], bytes: ["space", "bytes"] };
  const [kind, unit] = units[head.unit] ?? [head.unit, "count"];
  write(1, [...integer(1, string(kind)), ...integer(2, string(unit))]);
  const used = new Set();
  model.weights.forEach((weight, row) => {
    if (!weight) return;
    const [, ...path] = model.path(model.leaf[row]); // the process is a label
    const frames = path.filter((frame) => model.functions[frame].kind !== "thread");
    frames.forEach((frame) => used.add(frame));
    const label = model.labels[model.rows.label[row]];
    const labels = [
      ...message(3, [...integer(1, string("comm")), ...integer(2, string(label.comm))]),
      ...message(3, [...integer(1, string("pid")), ...integer(3, label.pid)]),
    ];
    const ids = frames.reverse().flatMap((frame) => varint(frame + 1));
    write(2, [...message(1, ids), ...message(2, varint(Math.round(weight))), ...labels]);
  });
  const modules = new Map();
  for (const frame of used) {
    const { name, module } = model.functions[frame];
    if (module && !modules.has(module)) modules.set(module, modules.size + 1);
    const line = message(4, integer(1, frame + 1));
    write(4, [...integer(1, frame + 1), ...integer(2, modules.get(module) ?? 0), ...line]);
    const text = string(name);
    const names = [...integer(2, text), ...integer(3, text), ...integer(4, string(module))];
    write(5, [...integer(1, frame + 1), ...names]);
  }
  for (const [module, id] of modules) {
    write(3, [...integer(1, id), ...integer(3, 2 ** 52), ...integer(5, string(module)), ...integer(7, 1)]);
  }
  for (const text of strings.keys()) {
    const bytes = utf8.encode(text);
    parts.push(Uint8Array.from([...varint(6 * 8 + 2), ...varint(bytes.length)]), bytes);
  }
  return new Blob(parts);
}

async function gzipped(blob) {
  return new Response(blob.stream().pipeThrough(new CompressionStream("gzip"))).blob();
}

const FILES = {
  folded: async ({ model }) => ["profile.folded", new Blob([folded(model)])],
  speedscope: async ({ model, head }) => ["profile.speedscope.json", new Blob([speedscope(model, head)])],
  pprof: async ({ model, head }) => ["profile.pb.gz", await gzipped(pprof(model, head))],
  svg: async (app) => {
    const describe = (branch) => app.describeBox(branch).join("\n");
    return ["profile.svg", new Blob([svgOf(drawn(app), app.head.title, describe)], { type: "image/svg+xml" })];
  },
  png: async (app) => ["profile.png", await pngOf(drawn(app), app.head.title)],
};

// The flame graph, drawn, whatever the page shows now.
function drawn(app) {
  app.tab = "graph";
  app.sandwiched = -1;
  app.draw();
  return app.flame;
}

async function save(kind, app) {
  const [name, blob] = await FILES[kind](app);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
