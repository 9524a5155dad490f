// Bookings of the running year, kept in memory.
const bookings = [];
for (let n = 0; n < 40000; n += 1) {
  bookings.push({ id: n, account: `A${n % 900}`, cents: (n * 7919) % 100000, day: n % 365, text: `booking ${n}` });
}

module.exports = { bookings };
