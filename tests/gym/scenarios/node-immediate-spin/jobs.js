const http = require('http');
let done = false;
function pollJob() {
  if (!done) setImmediate(pollJob);
}
setTimeout(() => { done = true; }, 1e9);
pollJob();
http.createServer((request, response) => response.end('waiting')).listen(+process.argv[2], '127.0.0.1');
