const { Worker, isMainThread } = require("worker_threads");

let shown = 0;
function refreshBoard() {
  shown++;
}

if (isMainThread) for (let i = 0; i < 3; i++) new Worker(__filename);
setInterval(refreshBoard, 1);
