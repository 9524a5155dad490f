const http = require("http");
const { Spool } = require("./spool");

const spool = new Spool(process.argv[3]);
let id = 0;

http
  .createServer(async (request, response) => {
    await spool.store({ id: (id += 1), body: Buffer.alloc(60000, "m") });
    response.end("stored");
  })
  .listen(+process.argv[2], "127.0.0.1");
