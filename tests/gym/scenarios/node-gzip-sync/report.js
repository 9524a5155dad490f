const zlib = require("zlib");
const rows = Buffer.from(JSON.stringify(Array.from({ length: 90000 }, (_, n) => ({ n, total: (n * 7919) % 10007 }))));
require("http").createServer((request, response) => {
  response.end(String(zlib.gzipSync(rows, { level: 9 }).length));
}).listen(Number(process.argv[2]), "127.0.0.1");
