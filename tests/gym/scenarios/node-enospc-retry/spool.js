const fs = require("fs");
const path = require("path");

class Spool {
  constructor(folder) {
    this.folder = folder;
    this.waiting = [];
  }

  async store(message) {
    const name = path.join(this.folder, `${message.id}.msg`);
    for (;;) {
      try {
        await fs.promises.writeFile(name, message.body);
        return;
      } catch (error) {
        await new Promise((done) => setTimeout(done, 5)); // there may be room again
      }
    }
  }
}

module.exports = { Spool };
