const crypto = require('crypto');
const http = require('http');

function hashPassword(password) {
  return crypto.pbkdf2Sync(password, 'salt', 60000, 32, 'sha256').toString('hex');
}

function sessionFor(user) {
  return {user, token: hashPassword('secret of ' + user)};
}

http.createServer((request, response) => {
  response.end(JSON.stringify(sessionFor('anna')));
}).listen(process.argv[2], '127.0.0.1');
