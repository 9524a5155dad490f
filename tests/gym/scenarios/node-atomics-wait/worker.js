const { parentPort, workerData } = require('worker_threads');
parentPort.on('message', () => {
  setTimeout(() => {
    Atomics.add(workerData, 0, 1);
    Atomics.notify(workerData, 0);
  }, 120);
});
