const http = require('http');
const {fork} = require('child_process');
const free = [fork('./hasher.js'), fork('./hasher.js')];
const waiting = [];

function withHasher(job) {
  const worker = free.pop();
  if (!worker) return waiting.push(job);
  worker.once('message', (hash) => {
    free.push(worker);
    job(hash);
    if (waiting.length) withHasher(waiting.shift());
  });
  worker.send('secret');
}

http.createServer((request, response) => withHasher((hash) => response.end(hash))).listen(process.argv[2], '127.0.0.1');
