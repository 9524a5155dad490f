const http = require("http");
const { Redis } = require("./cart");

const [port, cache] = process.argv.slice(2).map(Number);
const redis = new Redis(cache);

http
  .createServer(async (request, response) => {
    const user = request.url.slice(1);
    const count = await redis.ask(`INCR cart:${user}`);
    await redis.ask(`EXPIRE cart:${user} 60`);
    response.end(JSON.stringify({ user, count }));
  })
  .listen(port, "127.0.0.1");
