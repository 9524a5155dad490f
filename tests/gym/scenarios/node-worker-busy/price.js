const { parentPort } = require("worker_threads");

function priceBasket(seed) {
  let sum = 0;
  for (let i = 0; i < 2e7; i++) sum = (sum + Math.sqrt(seed * i)) % 1000;
  return sum;
}

parentPort.on("message", (seed) => parentPort.postMessage(priceBasket(seed)));
