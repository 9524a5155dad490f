const crypto = require('crypto');
const http = require('http');

class Accounts {
  constructor() {
    this.salt = crypto.randomBytes(16);
  }

  checkPassword(password) {
    return crypto.scryptSync(password, this.salt, 32, { N: 8192 }).toString('hex');
  }
}

const accounts = new Accounts();
const routes = {
  '/login': async () => ({ token: accounts.checkPassword('secret') }),
};

http.createServer(async (request, response) => {
  const body = await routes[request.url]();
  response.end(JSON.stringify(body));
}).listen(Number(process.argv[2]), '127.0.0.1');
