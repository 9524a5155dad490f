const fs = require('fs');
const http = require('http');
const items = Array.from({length: 60}, (_, n) => ({sku: 'sku-' + n, title: 'article number ' + n, cents: n * 99}));

function totalCart(list) {
  return list.reduce((sum, item) => sum + item.cents, 0);
}

function logCart(request) {
  fs.writeSync(1, JSON.stringify({url: request.url, when: Date.now(), items}) + "\n");
}

http.createServer((request, response) => {
  logCart(request);
  response.end(String(totalCart(items)));
}).listen(process.argv[2], '127.0.0.1');
