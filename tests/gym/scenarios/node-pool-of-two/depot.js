const http = require('http');
const [port, down] = process.argv.slice(2);
const agent = new http.Agent({keepAlive: true});
const waiting = [];
let free = 2;

function ask(done) {
  free--;
  http.get({port: down, host: '127.0.0.1', agent}, (answer) => {
    answer.resume().on('end', () => {
      free++;
      done();
      if (waiting.length) ask(waiting.shift());
    });
  });
}

http.createServer((request, response) => {
  const done = () => response.end('ok');
  if (free) ask(done);
  else waiting.push(done);
}).listen(port, '127.0.0.1');
