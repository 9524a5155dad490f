const { sendMetric } = require("./metrics");

const port = +process.argv[2];

async function handleJob(number) {
  await sendMetric(port, `jobs.started ${number}`);
  const sum = Array.from({ length: 200 }, (_, n) => n * number).reduce((a, b) => a + b, 0);
  await sendMetric(port, `jobs.sum ${sum}`);
}

async function run() {
  for (let number = 0; ; number += 1) await handleJob(number);
}

for (let n = 0; n < 4; n += 1) run();
