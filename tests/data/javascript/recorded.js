'use strict';
// Each function records, outside of the heap, that it runs, and on which line it calls the next one.
// IN, AT and OUT are written out before the program runs: a number for the function, and the line.
const { Worker, isMainThread } = require('worker_threads');
const R = new Int32Array(new ArrayBuffer(1 << 16));
const tid = require('fs').readlinkSync('/proc/thread-self').split('/')[2] | 0;
R[0] = 0x50feb0f1; R[1] = 0x1a2b3c4d; R[2] = tid; R[3] = 0x77665544;

function leaf(d, n) {
  IN(leaf);
  let r = n | 0;
  for (let i = 0; i < (n & 255); i++) r = (Math.imul(r, 1103515245) + 12345 + (r >>> 7)) | 0;
  OUT; return r;
}
function compare(d, n) { IN(compare); const r = n * 17; OUT; return r ^ (r >>> 3); }
function thrower(d, n) { IN(thrower); const r = n * 17; OUT; if (r !== -77) throw new RangeError('x'); return r; }
function again(d, n) {
  IN(again); let r = n;
  if (n > 0 && d < 50) { AT; r += again(d + 1, n - 1); }
  AT; r += leaf(d + 1, n);
  OUT; return r;
}
function natives(d, n) {
  IN(natives); let r = n;
  AT; r += JSON.parse('{"a":[1,2,3,{"b":' + n + '}]}').a.length;
  AT; r += String(n).padStart(20, 'x').indexOf('1');
  AT; r += [3, 1, 2, n].concat([1, 2]).slice(1).length;
  AT; r += Buffer.from('abc' + n).toString('hex').length;
  AT; r += (Math.sin(n) * 10) | 0;
  AT; r += /(\d+)x(\d+)/.exec('12x34' + n)[1].length;
  AT; r += new Map([[n, 1], [2, 3]]).get(n);
  AT; r += Object.keys({ a: 1, b: n }).length;
  AT; r += new Uint8Array(300).fill(n & 255)[3];
  if ((n & 63) === 0) { AT; r += require('crypto').createHash('md5').update('x' + n).digest('hex').length; }
  OUT; return r | 0;
}
class Item {
  constructor(d, n) { this.d = d; this.n = n; }
  toJSON() { const d = this.d; IN(toJSON); AT; const r = leaf(d + 1, this.n & 255); OUT; return r; }
}
class First { apply_(d, n) { IN(apply_); AT; const r = leaf(d + 1, n); OUT; return r; } }
class Second { apply_(d, n) { IN(apply_); AT; const r = leaf(d + 1, n + 1); OUT; return r; } }
class Third { apply_(d, n) { IN(apply_); AT; const r = leaf(d + 1, n + 2); OUT; return r; } }
class Fourth { apply_(d, n) { IN(apply_); AT; const r = leaf(d + 1, n + 3); OUT; return r; } }
class Fifth { apply_(d, n) { IN(apply_); AT; const r = leaf(d + 1, n + 4); OUT; return r; } }
const SHAPES = [new First(), new Second(), new Third(), new Fourth(), new Fifth()];

function viaShape(d, n) { IN(viaShape); AT; const r = SHAPES[n % 5].apply_(d + 1, n); OUT; return r; }
function viaSort(d, n) {
  IN(viaSort);
  AT; const a = [5, 3, 9, 1, 7, n & 15, 4]; a.sort((x, y) => { compare(d + 1, x); return x - y; });
  OUT; return a[0];
}
function viaThrow(d, n) {
  IN(viaThrow); let r = 0;
  try { AT; r += viaShape(d + 1, n); if ((n & 7) === 3) thrower(d + 1, n); } catch (e) { R[8] = d + 1; r++; }
  AT; r += leaf(d + 1, n);
  OUT; return r;
}
function viaEach(d, n) {
  IN(viaEach); let r = 0;
  AT; [1, 2, 3].forEach((x) => { if (x === (n & 3)) r += viaThrow(d + 1, n + x); });
  OUT; return r;
}
function viaMap(d, n) {
  IN(viaMap);
  AT; const r = [1, 2].map((x) => viaEach(d + 1, n + x)).reduce((p, q) => (p + q) | 0, 0);
  OUT; return r;
}
function viaReflect(d, n) { IN(viaReflect); AT; const r = Reflect.apply(viaSort, null, [d + 1, n]); OUT; return r; }
function viaBind(d, n) {
  IN(viaBind); let r = 0;
  AT; r += viaEach.call(null, d + 1, n);
  AT; r += viaShape.bind(null, d + 1)(n);
  OUT; return r;
}
function viaReplace(d, n) {
  IN(viaReplace);
  AT; const r = 'abcabc'.replace(/b/g, () => String(leaf(d + 1, n) & 7)).length;
  OUT; return r;
}
function viaJson(d, n) { IN(viaJson); AT; const r = JSON.stringify({ x: new Item(d + 1, n) }).length; OUT; return r; }
function viaSwitch(d, n) {
  IN(viaSwitch); let r = 0;
  switch (n & 7) {
    case 0: AT; r += viaMap(d + 1, n); break;
    case 1: AT; r += viaReflect(d + 1, n); break;
    case 2: AT; r += viaBind(d + 1, n); break;
    case 3: AT; r += viaReplace(d + 1, n); break;
    case 4: AT; r += viaJson(d + 1, n); break;
    case 5: AT; r += natives(d + 1, n); break;
    case 6: AT; r += again(d + 1, n & 15); break;
    default: AT; r += viaThrow(d + 1, n);
  }
  AT; r += leaf(d + 1, n);
  OUT; return r;
}
function* steps(d, n) { IN(steps); AT; const r = viaSwitch(d + 1, n); OUT; yield r; }
function viaSteps(d, n) { IN(viaSteps); AT; const r = steps(d + 1, n).next().value; OUT; return r; }

// Functions that run for some milliseconds in a turn, so that some are seldom called, and are in the interpreter.
// RARE
function rare@(d, n) {
  IN(rare@); let r = 0;
  const until = Date.now() + 8 + @ % 3 * 6;
  do { AT; r += @ % 5 ? viaSwitch(d + 1, n++) : viaSteps(d + 1, n++); } while (Date.now() < until);
  if (@ % 4 === 1 && d < 5) { AT; r += rarely(d + 1, n * 7 + @); }
  OUT; return r;
}
// END
function rarely(d, n) {
  IN(rarely); let r = 0;
  switch (n % 32) {
// RARE
    case @: AT; r = rare@(d + 1, n); break;
// END
  }
  OUT; return r;
}

let seed = 1;
function next() { seed = (seed * 16807) % 2147483647; return seed; }
function turn() {
  const d = 0; IN(turn);
  AT; rarely(1, next());
  OUT; setImmediate(turn);
}
async function later() {
  for (;;) {
    await new Promise((ok) => { setTimeout(ok, 20); });
    const d = 0; IN(later);
    AT; viaMap(1, next() % 1000);
    OUT;
  }
}
setImmediate(turn); later();
if (isMainThread) {
  for (let k = 0; k < (process.argv[2] | 0); k++) new Worker(__filename);
  setTimeout(() => console.log('ready'), 500);
}
