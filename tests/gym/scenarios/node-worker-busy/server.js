const { Worker } = require("worker_threads");
const http = require("http");

const worker = new Worker(__dirname + "/price.js");
const waiting = [];
worker.on("message", (answer) => waiting.shift().end(String(answer)));

http
  .createServer((request, response) => {
    waiting.push(response);
    worker.postMessage(7);
  })
  .listen(Number(process.argv[2]), "127.0.0.1");
