const fs = require('fs');
const http = require('http');
const path = require('path');

class CartStore {
  #folder;
  constructor(folder) { this.#folder = folder; }

  persist(cart) {
    const file = path.join(this.#folder, `cart-${cart.id}.json`);
    const fd = fs.openSync(file, 'w');
    for (const item of cart.items) {
      fs.writeSync(fd, JSON.stringify(item));
      fs.fsyncSync(fd);
    }
    fs.closeSync(fd);
  }
}

const store = new CartStore(process.argv[3]);
let n = 0;
http.createServer((request, response) => {
  store.persist({ id: n++ % 50, items: Array.from({ length: 20 }, (_, at) => ({ at })) });
  response.end('ok');
}).listen(Number(process.argv[2]), '127.0.0.1');
