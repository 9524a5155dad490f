const http = require('http');
const { Resolver } = require('dns').promises;

const resolver = new Resolver({ timeout: 400, tries: 2 });
resolver.setServers(['127.0.0.53']);

async function findMirror(region) {
  try {
    return (await resolver.resolve4(`${region}.mirrors.example.net`))[0];
  } catch (error) {
    return '127.0.0.1';
  }
}

http.createServer(async (request, response) => {
  const mirror = await findMirror('r' + request.url.length);
  response.end(mirror + '\n');
}).listen(Number(process.argv[2]), '127.0.0.1');
