const dns = require('dns');
const http = require('http');
const [port, down] = process.argv.slice(2);
const resolver = new dns.promises.Resolver();
resolver.setServers(['127.0.0.93']);

async function findBackend() {
  return (await resolver.resolve4('backend.example.test'))[0];
}

http.createServer(async (request, response) => {
  const host = await findBackend();
  http.get({host, port: down, path: '/'}, (answer) => answer.pipe(response));
}).listen(port, '127.0.0.1');
