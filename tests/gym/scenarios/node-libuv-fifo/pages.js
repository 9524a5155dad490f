const fs = require('fs');
const http = require('http');

const [port, page, ...feeds] = process.argv.slice(2);

function followFeed(path) {
  fs.open(path, 'r', (error, file) => {
    const buffer = Buffer.alloc(100);
    const next = () => fs.read(file, buffer, 0, 100, null, next);
    next();
  });
}

feeds.forEach(followFeed);

http.createServer((request, response) => {
  fs.readFile(page, (error, text) => response.end(text));
}).listen(port, '127.0.0.1');
