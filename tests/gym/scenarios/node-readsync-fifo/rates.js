const fs = require('fs');
const http = require('http');
const [port, fifo] = process.argv.slice(2);

function readRate() {
  return fs.readFileSync(fifo, 'utf8');
}

http.createServer((request, response) => response.end(readRate())).listen(port, '127.0.0.1');
