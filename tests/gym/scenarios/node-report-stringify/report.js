const { bookings } = require("./ledger");

class YearReport {
  constructor(account) {
    this.account = account;
  }

  snapshot() {
    return JSON.parse(JSON.stringify(bookings)); // nobody may change the originals
  }

  total() {
    return this.snapshot()
      .filter((b) => b.account === this.account)
      .reduce((sum, b) => sum + b.cents, 0);
  }
}

module.exports = { YearReport };
