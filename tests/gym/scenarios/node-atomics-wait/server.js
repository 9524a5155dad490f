const http = require('http');
const { Worker } = require('worker_threads');
const shared = new Int32Array(new SharedArrayBuffer(8));
const worker = new Worker('./worker.js', { workerData: shared });

function renderSync() {
  const seen = Atomics.load(shared, 0);
  worker.postMessage('render');
  Atomics.wait(shared, 0, seen);
  return Atomics.load(shared, 0);
}

http.createServer((request, response) => response.end(String(renderSync()))).listen(+process.argv[2], '127.0.0.1');
