"use strict";
// The workload of docs/gallery.md, a small service: it parses orders, prices them, sorts and renders
// them, for some seconds. With "fast", it parses them once, which took more than half of the time.
const orders = Array.from({length: 400}, (_, i) => JSON.stringify(
  {id: i, items: Array.from({length: 20}, (_, j) => ({name: `item ${(i * 31 + j * 17) % 97}`, price: (i * j) % 50}))}));
function parseOrder(text) { return JSON.parse(text); }
function priceOrder(order) { let sum = 0; for (const item of order.items) sum += discount(item); return sum; }
function discount(item) { return /^item [1-9]*$/.test(item.name) ? item.price * 0.9 : item.price; }
function sortOrders(list) { return list.sort((a, b) => compareNames(a, b)); }
function compareNames(a, b) { return a.items[0].name.localeCompare(b.items[0].name); }
function renderPage(list) { return list.map(renderRow).join("\n"); }
function renderRow(order) { return `<tr><td>${order.id}<td>${order.items.map((i) => i.name.toUpperCase()).join(", ")}`; }
const parsed = process.argv[3] === "fast" ? orders.map(parseOrder) : null;
function handleRequest() {
  const list = parsed ? [...parsed] : orders.map(parseOrder);
  for (const order of list) order.total = priceOrder(order);
  sortOrders(list);
  return renderPage(list).length;
}
const end = Date.now() + Number(process.argv[2] || 4) * 1000;
while (Date.now() < end) handleRequest();
