// Begin: a saved profile, or one that comes while it is measured.

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
    app.show(model, { ...last, live: true, total: model.rows.weight.reduce((a, b) => a + b, 0) });
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
