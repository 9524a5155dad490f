const fs = require('fs');
const http = require('http');
const [port, file] = process.argv.slice(2);
fs.writeFileSync(file, JSON.stringify(Array.from({length: 40000}, (_, n) => ({sku: 's' + n, cents: n, tags: ['a' + n % 7, 'b' + n % 11]}))));

function loadCatalog() {
  return JSON.parse(fs.readFileSync(file, 'utf8'));
}

function findItem(sku) {
  return loadCatalog().find((item) => item.sku === sku);
}

http.createServer((request, response) => {
  response.end(JSON.stringify(findItem('s777')));
}).listen(port, '127.0.0.1');
