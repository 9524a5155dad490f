// What stands around the graph: the legend, what narrows it, and the tables.

const KINDS = { // in the legend; processes and threads have their own rows
  user: "native", kernel: "kernel", python: "Python", jit: "generated", inlined: "inlined", unknown: "no name",
};
const CHANGES = [["grew", 1], ["same, or chance of sampling", 0], ["shrank", -1]]; // in the legend

// What is hidden and what is asked for, each with a way back.
function drawNarrowing(app) {
  const chips = [...app.only].map((key) => ["only with", key, app.only])
    .concat([...app.hidden].map((key) => ["without", key, app.hidden]));
  $("narrowing").hidden = !chips.length;
  $("narrowing").replaceChildren(...chips.map(([word, key, set]) => {
    const chip = document.createElement("button");
    chip.textContent = `${word} ${key.split("\n")[0]} (show all)`;
    chip.addEventListener("click", () => {
      set.delete(key);
      app.weigh();
    });
    return chip;
  }));
}

function drawLegend(app) {
  const { model, dark } = app;
  let named = [];
  if (model.compares) named = CHANGES.map(([text, change]) => [text, changeColour(change, dark)]);
  else if (app.colour === "state") named = model.states.map((state) => [state, stateColour(state, dark)]);
  else if (app.colour === "kind") {
    const kinds = new Set(model.functions.map(({ kind }) => kind));
    named = Object.entries(KINDS).filter(([kind]) => kinds.has(kind))
      .map(([kind, text]) => [text, functionColour({ name: "", kind }, { by: "kind", dark })]);
  }
  $("legend").hidden = named.length < 2 || app.tab !== "graph";
  $("legend").replaceChildren(...named.map(([text, colour]) => {
    const entry = document.createElement("span");
    entry.textContent = text;
    entry.style.setProperty("--colour", colour);
    return entry;
  }));
}

function tabulate(app) {
  $("lines").classList.toggle("compares", app.model.compares);
  const columns = tableColumns({
    compares: app.model.compares,
    amount: (weight) => app.amount(weight),
    part: (weight) => weight * app.afterScale,
    partBefore: (weight) => weight * app.beforeScale,
    isChance: (after, before) => app.isChance(after, before),
  });
  const { shown, all } = fillTable($("lines"), tableLines(app.model, $("by").value), {
    columns,
    sort: app.sort,
    test: app.test,
    part: (weight) => weight * app.afterScale,
    pick: (frame) => {
      app.tab = "graph";
      app.openSandwich(frame);
      app.draw();
    },
    sortBy: (id) => {
      app.sort = [id, app.sort[0] === id && app.sort[1] === "down" ? "up" : "down"];
      app.draw();
    },
  });
  $("line-count").textContent = shown < all ? `the first ${shown} of ${all}` : `${all}`;
}

function listVanished(app) {
  const { model } = app;
  const keys = Int32Array.from(model.functions, (_, i) => i);
  const { total, totalBefore } = model.byFunction(keys, keys.length);
  const gone = [...keys].filter((key) => totalBefore[key] && !total[key])
    .sort((a, b) => totalBefore[b] - totalBefore[a]);
  $("vanished-body").replaceChildren(...gone.slice(0, SHOWN).map((key) => {
    const row = document.createElement("tr");
    const { name, short, module } = model.functions[key];
    const percent = `${(100 * totalBefore[key] * app.beforeScale).toFixed(2)}%`;
    for (const text of [app.amount(totalBefore[key]), percent]) row.insertCell().textContent = text;
    for (const [kind, text, title] of [["name", short, name], ["module", basename(module), module]]) {
      Object.assign(row.insertCell(), { className: kind, textContent: text, title });
    }
    return row;
  }));
}
