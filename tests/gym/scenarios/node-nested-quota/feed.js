const http = require("http");

function renderFeed() {
  const items = [];
  for (let i = 0; i < 9000; i++) items.push({ id: i, title: "item " + i, tags: ["a", "b", i] });
  return JSON.stringify(items);
}

http.createServer((request, response) => response.end(renderFeed())).listen(Number(process.argv[2]), "127.0.0.1");
