const http = require('http');

const tickets = Array.from({length: 4000}, (_, id) => ({id, owner: `owner ${id % 97}`, hours: (id * 7919) % 50}));

function buildReport() {
  const owners = [];
  for (const ticket of tickets) {
    const known = owners.find((owner) => owner.name === ticket.owner);
    if (known) known.hours += ticket.hours;
    else owners.push({name: ticket.owner, hours: ticket.hours});
    for (const other of tickets) if (other.owner === ticket.owner && other.id < ticket.id) ticket.last = other.id;
  }
  return owners;
}

setInterval(buildReport, 700);
http.createServer((request, response) => response.end('ok')).listen(process.argv[2], '127.0.0.1');
