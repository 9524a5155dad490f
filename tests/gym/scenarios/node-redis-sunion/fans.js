const http = require('http');
const net = require('net');
const [port, cache] = process.argv.slice(2);
const redis = net.connect(cache, '127.0.0.1');
const waiting = [];
redis.on('data', (data) => {
  for (let n = data.toString('latin1').split('\r\n').length - 1; n > 0 && waiting.length; n--) waiting.shift()();
});

function ask(...words) {
  return new Promise((done) => {
    waiting.push(done);
    redis.write(`*${words.length}\r\n` + words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join(''));
  });
}

async function mergeFans() {
  await ask('SUNIONSTORE', 'all', 'fans:1', 'fans:2', 'fans:3');
}

async function main() {
  for (const set of [1, 2, 3]) {
    for (let n = 0; n < 40; n++) {
      await ask('SADD', `fans:${set}`, ...Array.from({length: 1000}, (_, m) => `person-${set * 13000 + n * 1000 + m}`));
    }
  }
  http.createServer(async (request, response) => {
    await mergeFans();
    response.end('ok');
  }).listen(port, '127.0.0.1');
}
main();
