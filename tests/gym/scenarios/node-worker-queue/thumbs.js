const http = require('http');
const {Worker, isMainThread, parentPort} = require('worker_threads');

function drawThumb(seed) {
  let sum = seed;
  for (let y = 0; y < 1500; y++) for (let x = 0; x < 1500; x++) sum = (sum * 31 + (x ^ y)) % 65521;
  return sum;
}

if (isMainThread) {
  const free = [], queue = [];
  const next = () => {
    while (free.length && queue.length) {
      const worker = free.pop(), job = queue.shift();
      worker.once('message', (sum) => { job.response.end(String(sum)); free.push(worker); next(); });
      worker.postMessage(job.seed);
    }
  };
  free.push(new Worker(__filename));
  http.createServer((request, response) => { queue.push({seed: 17, response}); next(); }).listen(process.argv[2], '127.0.0.1');
} else {
  parentPort.on('message', (seed) => parentPort.postMessage(drawThumb(seed)));
}
