const fs = require('fs');
const path = require('path');

class Mailbox {
  constructor(folder) { this.folder = folder; }
  listSubjects() {
    const subjects = [];
    for (const name of fs.readdirSync(this.folder)) {
      const file = path.join(this.folder, name);
      if (fs.statSync(file).isFile()) {
        subjects.push(fs.readFileSync(file, 'utf8').split('\n', 1)[0]);
      }
    }
    return subjects;
  }
}
module.exports = { Mailbox };
