// What the reader does: buttons, keys, the pointer.

function listenTo(app) {
  for (const graph of app.graphs) listenToGraph(app, graph);
  const on = (id, kind, act) => $(id).addEventListener(kind, act);
  for (const tab of TABS) {
    on(`tab-${tab}`, "click", () => {
      app.tab = tab;
      app.draw();
    });
  }
  on("search", "input", () => app.search());
  on("search", "keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    app.goToHit(app.hit + (event.shiftKey ? -1 : 1));
  });
  on("expression", "click", () => {
    app.isExpression = !app.isExpression;
    app.search();
  });
  on("next", "click", () => app.goToHit(app.hit + 1));
  on("previous", "click", () => app.goToHit(app.hit - 1));
  on("invert", "click", () => {
    app.inverted = !app.inverted;
    app.flame.focus = null;
    app.grow();
  });
  on("up", "click", () => {
    app.flame.upwards = !app.flame.upwards;
    app.draw();
  });
  on("reset", "click", () => app.reset());
  on("colour", "change", () => {
    app.chosenColour = $("colour").value;
    app.flame.colours.clear();
    app.draw();
  });
  for (const id of ["order", "fold", "kinds", "widths", "scale"]) on(id, "change", () => app.grow());
  on("by", "change", () => app.draw());
  on("theme", "click", () => {
    app.dark = !app.dark;
    for (const graph of app.graphs) graph.colours.clear();
    app.weigh();
  });
  on("help", "click", () => $("keys").showModal());
  on("save", "change", async () => {
    const kind = $("save").value;
    $("save").value = "";
    if (kind) await save(kind, app);
  });
  on("copy", "click", () => app.copy());
  on("look", "click", () => {
    const frame = app.active.selected?.frame ?? -1;
    if (frame < 0) return;
    app.openSandwich(frame);
    app.draw();
  });
  on("sandwich-close", "click", () => app.reset());
  on("whole", "click", () => app.pickSpan(null));
  on("columns", "change", () => {
    app.timeline.bySecond = Boolean($("columns").value);
    app.timeline.paint();
    app.remember();
  });
  on("act", "click", () => openMenuBy(app));
  document.addEventListener("keydown", (event) => press(app, event));
  document.addEventListener("pointerdown", ({ target }) => {
    for (const popup of document.querySelectorAll("details.popup[open]")) if (!popup.contains(target)) popup.open = false;
  });
  addEventListener("scroll", () => ($("tip").hidden = true), { passive: true });
  addEventListener("blur", () => ($("tip").hidden = true));
  addEventListener("hashchange", () => location.reload());
  new ResizeObserver(() => app.model && app.draw()).observe(document.body);
}

function listenToGraph(app, graph) {
  const { canvas } = graph;
  canvas.addEventListener("click", (event) => {
    const box = graph.at(event.offsetX, event.offsetY);
    if (box) app.zoom(graph, box.branch);
  });
  canvas.addEventListener("contextmenu", (event) => {
    const box = graph.at(event.offsetX, event.offsetY);
    if (!box) return;
    event.preventDefault();
    app.select(graph, box.branch);
    app.draw();
    app.menu.open(event.clientX, event.clientY, app.menuOf(graph, box.branch));
  });
  canvas.addEventListener("pointermove", (event) => {
    const box = event.pointerType === "touch" ? undefined : graph.at(event.offsetX, event.offsetY);
    showTip(box ? app.describeMore(graph, box.branch).join("\n") : "", event);
  });
  canvas.addEventListener("pointerleave", () => ($("tip").hidden = true));
}

// Text beside the pointer, inside the window; none for "".
function showTip(text, { clientX, clientY }) {
  $("tip").hidden = !text;
  $("tip").textContent = text;
  if (!text) return;
  const { width, height } = $("tip").getBoundingClientRect();
  const left = clientX + 14 + width > innerWidth ? clientX - width - 10 : clientX + 14;
  const top = clientY + 18 + height > innerHeight ? clientY - height - 10 : clientY + 18;
  $("tip").style.left = `${Math.max(4, left)}px`;
  $("tip").style.top = `${Math.max(4, top)}px`;
}

function press(app, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  if (event.key === "Escape") {
    document.activeElement.blur();
    app.reset();
    return;
  }
  if (["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
  const { selected } = app.active;
  const act = {
    "/": () => $("search").focus(),
    n: () => app.goToHit(app.hit + 1),
    N: () => app.goToHit(app.hit - 1),
    i: () => $("invert").click(),
    u: () => $("up").click(),
    t: () => $(app.tab === "table" ? "tab-graph" : "tab-table").click(),
    d: () => $("theme").click(),
    p: () => $("pause").click(),
    "?": () => $("keys").showModal(),
    c: () => selected && app.copy(),
    s: () => $("look").click(),
    m: () => selected && openMenuBy(app),
    ContextMenu: () => selected && openMenuBy(app),
    Enter: () => selected && app.zoom(app.active, selected),
  }[event.key] ?? (event.key.startsWith("Arrow") ? () => walk(app, event.key) : null);
  const pressing = event.key === "Enter" && ["BUTTON", "SUMMARY", "A"].includes(event.target.tagName);
  if (!act || app.tab !== "graph" && event.key.startsWith("Arrow") || pressing) return;
  event.preventDefault();
  act();
}

function openMenuBy(app) {
  const graph = app.active;
  const place = graph.find(graph.selected);
  const { left, top } = graph.canvas.getBoundingClientRect();
  app.menu.open(left + (place?.box.left ?? 0) + 8, top + (place?.top ?? 0) + ROW, app.menuOf(graph, graph.selected));
}

// Arrow keys: towards the root and the leaves as drawn, left and right among siblings.
function walk(app, key) {
  const graph = app.active;
  const at = graph.selected ?? graph.focus;
  if (!at) return;
  const siblings = at.parent?.children ?? [at];
  const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
  let to = at;
  if (step) to = siblings[siblings.indexOf(at) + step] ?? at;
  else if ((key === "ArrowUp") !== graph.upwards) to = at.parent ?? at;
  else to = at.children.reduce((most, child) => (most && most.weight >= child.weight ? most : child), null) ?? at;
  app.select(graph, to);
  if (![...to.ancestry()].includes(graph.focus)) graph.focus = to.parent ?? to;
  app.draw();
}
