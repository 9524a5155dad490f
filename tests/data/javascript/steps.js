// Each function has one caller, and each caller calls it on a line of its own.
'use strict';
let sink = 0;
class Shape { area(n) { return n; } }
class Square extends Shape { area(n) { return leafA(n) * n; } } // Square
class Circle extends Shape { area(n) { return leafB(n) + 1.5; } } // Circle
class Wedge extends Shape { area(n) { return leafC(n) | 0; } } // Wedge
const SHAPES = [new Square(), new Circle(), new Wedge()];
function leafA(n) { return n * 31 + 7; }
function leafB(n) { let m = n; for (let at = 0; at < (n & 3); at++) m = m * 5 + at; return m; }
function leafC(n) { return n / ((n & 7) + 1); }
function viaSort(n) {
  return [3, 1, n & 7].sort(function compare(a, b) { return leafSort(a) - b; })[0];
}
function leafSort(n) { return n + 1; }
function viaMap(n) {
  return [n, n + 1].map((x) => leafMap(x) + n)[1];
}
function leafMap(n) { return n ^ 5; }
function viaReplace(n) {
  return ('a' + n).replace(/[0-9]/g, function digit(one) { return leafReplace(one); }).length;
}
function leafReplace(one) { return one + '.'; }
function guarded(n) {
  try { return thrown(n); } catch (error) { return caught(n, error); }
}
function thrown(n) { return thrower(n) + 1; }
function thrower(n) { if ((n & 15) === 0) throw new RangeError('x'); return n; }
function caught(n, error) { return n + error.message.length; }
function* generated(n) { yield leafYield(n); yield n + 1; }
function leafYield(n) { return n - 2; }
function viaGenerator(n) { let sum = 0; for (const each of generated(n)) sum += each; return sum; }
function applied(n) { return bound.apply(null, [n, 2]); }
function boundLeaf(a, b) { return a * b; }
const bound = boundLeaf.bind(null);
function many(a, b, c, d, e, f, g, h) { return leafMany(a + b + c + d) + e + f + g + h; }
function leafMany(n) { return n | 1; }
function few(a) { return leafFew(a, 1, 2, 3); }
function leafFew(a, b, c) { return a + b + c; }
function texts(n) { return JSON.stringify({ n, text: 'x' + n }).length + parseInt('12' + n, 10); }
function built(n) { return new Built(n).n; }
class Built { constructor(n) { this.n = leafBuilt(n); } }
function leafBuilt(n) { return n % 7; }
function getter(n) { return OBJECT.value + n; }
const OBJECT = { get value() { return leafGetter(sink); } };
function leafGetter(n) { return n >> 2; }
function turn(n) {
  let sum = SHAPES[n % 3].area(n);
  sum += viaSort(n);
  sum += viaMap(n);
  sum += viaReplace(n);
  sum += guarded(n);
  sum += viaGenerator(n);
  sum += applied(n);
  sum += many(n, n, 3, n, 5, 6, n, 8);
  sum += few(n);
  sum += texts(n);
  sum += built(n);
  sum += getter(n);
  return sum;
}
function seldom(n) { return leafSeldom(n) + 1; }
function leafSeldom(n) { return n * 3; }
function main() {
  for (let n = 0; n < 20000; n++) sink = (sink + turn(n)) & 0xffff;
  require('fs').writeSync(1, 'ready\n');
  for (let n = 0; ; n = (n + 1) & 0xffff) {
    sink = (sink + turn(n)) & 0xffff;
    if (n % 7 === 0) sink += seldom(n);
  }
}
main();
