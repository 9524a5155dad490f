const kept = [];
for (let i = 0; i < 700000; i++) kept.push({ id: i, name: "n" + i });
function addSession(n) {
  kept[n % kept.length] = { id: n, name: "n" + n, tags: [n, n + 1] };
}
let n = 0;
function turn() {
  for (let i = 0; i < 20000; i++) addSession(n++);
  setTimeout(turn, 5);
}
turn();
