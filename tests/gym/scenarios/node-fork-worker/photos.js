const http = require('http');
const {fork} = require('child_process');
const worker = fork('./worker.js');
const waiting = new Map();
let last = 0;
worker.on('message', ({id, text}) => {
  waiting.get(id).end(text);
  waiting.delete(id);
});
http.createServer((request, response) => {
  if (request.url === '/health') return response.end('ok');
  waiting.set(++last, response);
  worker.send({id: last});
}).listen(process.argv[2], '127.0.0.1');
