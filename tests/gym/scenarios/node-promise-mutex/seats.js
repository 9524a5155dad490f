const http = require('http');
const [port, down] = process.argv.slice(2);
const agent = new http.Agent({keepAlive: true});
let tail = Promise.resolve();

function askSeat() {
  return new Promise((done) => {
    http.get({port: down, host: '127.0.0.1', agent}, (answer) => answer.resume().on('end', done));
  });
}

http.createServer((request, response) => {
  tail = tail.then(askSeat).then(() => response.end('ok'));
}).listen(port, '127.0.0.1');
