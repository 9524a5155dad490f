const cluster = require("cluster");
if (cluster.isPrimary) {
  cluster.fork();
  cluster.fork();
} else {
  process.title = "shop-worker";
  const text = JSON.stringify(Array.from({ length: 60000 }, (_, n) => ({ id: n, tags: ["a", "b"], name: "item" + n })));
  require("http").createServer((request, response) => response.end(String(JSON.parse(text).length)))
    .listen(Number(process.argv[2]), "127.0.0.1");
}
