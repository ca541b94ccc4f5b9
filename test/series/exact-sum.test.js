'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { addTo, rounded } = require('../../lib/series/exact-sum');

function sumOf(values) {
  const sums = new Float64Array(1);
  const errors = new Float64Array(1);
  for (const value of values) addTo(sums, errors, 0, value);
  return rounded(sums[0], errors[0]);
}

/** The exact sum of doubles, rounded once: doubles are whole multiples of 2^-1074. */
function exactSumOf(values) {
  const total = values.reduce((sum, value) => sum + scaled(value), 0n);
  return unscaled(total);
}

const view = new DataView(new ArrayBuffer(8));

function scaled(value) {
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const exponent = (bits >> 52n) & 0x7ffn;
  const fraction = bits & 0xfffffffffffffn;
  const whole = exponent === 0n ? fraction : (fraction | 0x10000000000000n) << (exponent - 1n);
  return bits >> 63n === 0n ? whole : -whole;
}

function unscaled(total) {
  const negative = total < 0n;
  const whole = negative ? -total : total;
  const shift = BigInt(Math.max(0, whole.toString(2).length - 53));
  const half = shift === 0n ? 0n : 1n << (shift - 1n);
  let top = whole >> shift;
  const rest = whole - (top << shift);
  if (shift > 0n && (rest > half || (rest === half && (top & 1n) === 1n))) top++;
  const value = Number(top) * 2 ** (Number(shift) - 1074);
  return negative ? -value : value;
}

test('exact sum: the reference of these tests is exact', () => {
  assert.strictEqual(exactSumOf([0.1, 0.2]), 0.1 + 0.2);
  assert.strictEqual(exactSumOf([1e16, 1, -1e16]), 1);
  assert.strictEqual(exactSumOf([0.1, 0.2, -0.3]), 2 ** -55);
  assert.strictEqual(exactSumOf([1, 2 ** -53, 2 ** -60]), 1 + 2 ** -52);
});

const amount = fc.double({ min: 1e-9, max: 1e9, noNaN: true });

test('exact sum: a sum of positive doubles is the exact sum, rounded once', () => {
  fc.assert(
    fc.property(fc.array(amount, { maxLength: 60, size: 'max' }), values => {
      assert.strictEqual(sumOf(values), exactSumOf(values));
    }),
    { numRuns: 1000 },
  );
});

test('exact sum: a pair is exact after 200,000 additions', () => {
  const sums = new Float64Array(1);
  const errors = new Float64Array(1);
  let exact = 0n;
  for (let i = 1; i <= 200_000; i++) {
    const value = (i * 0.1) % 7.3;
    exact += scaled(value);
    addTo(sums, errors, 0, value);
    if (i % 1000 === 0) assert.strictEqual(rounded(sums[0], errors[0]), unscaled(exact));
  }
});

for (const [name, values, expected] of [
  ['an infinity', [1, Infinity, 2], Infinity],
  ['a negative infinity', [-Infinity, 5, 6], -Infinity],
  ['both infinities', [Infinity, -Infinity, 1], NaN],
  ['NaN', [1, NaN, 2], NaN],
  ['more than a double can hold', [1.7e308, 1.7e308], Infinity],
  ['more than a double can hold, and then less', [1.7e308, 1.7e308, -1.7e308], Infinity],
]) {
  test(`exact sum: ${name} gives the result of a plain sum`, () => {
    const plain = values.reduce((sum, value) => sum + value);
    assert.strictEqual(plain, expected);
    assert.strictEqual(sumOf(values), expected);
  });
}
