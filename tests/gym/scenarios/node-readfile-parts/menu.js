const fs = require('fs');
const http = require('http');
const path = require('path');
const [port, folder] = process.argv.slice(2);

function readParts() {
  return fs.readdirSync(folder).map((name) => fs.readFileSync(path.join(folder, name), 'utf8'));
}

function renderMenu() {
  return '<ul>' + readParts().join('') + '</ul>';
}

http.createServer((request, response) => response.end(renderMenu())).listen(port, '127.0.0.1');
