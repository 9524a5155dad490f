const fs = require("fs");
const folder = process.argv[2];

function rereadJobs() {
  let size = 0;
  for (const name of fs.readdirSync(folder)) size += fs.readFileSync(folder + "/" + name).length;
  return size;
}

fs.watch(folder, rereadJobs);
