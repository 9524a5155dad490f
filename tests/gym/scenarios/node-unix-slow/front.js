const http = require('http');

const [port, socketPath] = process.argv.slice(2);

function readSession() {
  return new Promise((resolve, reject) => {
    http.get({socketPath, path: '/session'}, answer => {
      answer.resume();
      answer.on('end', resolve);
    }).on('error', reject);
  });
}

http.createServer(async (request, response) => {
  await readSession();
  response.end('ok');
}).listen(port, '127.0.0.1');
