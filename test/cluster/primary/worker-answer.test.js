'use strict';

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');
const { setImmediate: turn } = require('node:timers/promises');
const v8 = require('node:v8');
const vm = require('node:vm');
const { readAnswer, countReason } = require('../../../lib/cluster/primary/worker-answer');

const FILE = `w3-r5-${'a'.repeat(24)}.columns`;
const read = message => readAnswer(message, 3, 5);

describe('the answer of a worker', () => {
  it('the answer of a worker is the name of its file, a source, or metrics as JSON', () => {
    assert.deepEqual(read({ file: FILE, bytes: 8 }), { answer: { workerId: 3, file: FILE, maxBytes: 8 } });
    assert.deepEqual(read({ source: 'AAAA', reason: 'ENOSPC' }), {
      answer: { workerId: 3, source: 'AAAA' },
      overIpc: 'ENOSPC',
    });
    assert.deepEqual(read({ metrics: [[]] }), { answer: { workerId: 3, metrics: [[]] } });
  });

  it('the answer of a worker with fields of another type is refused, and no field is converted to text', () => {
    const untouchable = { toString: null, [Symbol.toPrimitive]: () => assert.fail('converted') };
    for (const value of [null, undefined, 7, true, [], {}, untouchable]) {
      const refusals = [
        read({ file: value }),
        read({ source: value }),
        read({ error: value }),
        read({ metrics: Array.isArray(value) ? 'x' : value }),
      ];
      for (const { answer, refused, error } of refusals) {
        assert.equal(answer, undefined);
        assert.equal(refused, 'answer');
        assert.equal(typeof error, 'string');
      }
      assert.equal(read({ source: '', reason: value }).overIpc, 'unknown');
    }
  });

  it('the answer of a worker whose file has a name of another shape is refused', () => {
    const names = [
      ...[`../${FILE}`, `./${FILE}`, `x/${FILE}`, `..\\${FILE}`, `/tmp/${FILE}`, ` ${FILE}`, `${FILE}\0`],
      ...[`${FILE}\n`, FILE.replace('.columns', '.tmp'), FILE.toUpperCase(), FILE.replace('a.', '.')],
      ...[FILE.replace('w3', 'w2'), FILE.replace('r5', 'r1'), `w3-${'0'.repeat(24)}.log`, 'retired.snap'],
      ...['owner.json', 'lock', '.', '..', '', FILE.repeat(100_000), [FILE], { toString: () => FILE }],
    ];
    for (const file of names) assert.equal(read({ file, bytes: 8 }).refused, 'answer', String(file));
  });

  it('the answer of a worker with an invalid length of its file is passed on, so that the file is refused and removed', () => {
    for (const bytes of [undefined, null, '8', 8.5, NaN, Infinity, {}]) {
      assert.deepEqual(read({ file: FILE, bytes }).answer, { workerId: 3, file: FILE, maxBytes: 0 });
    }
  });

  it('the answer of a worker does not stay in memory for a text that is stored of it', async () => {
    v8.setFlagsFromString('--expose-gc');
    const collect = vm.runInNewContext('gc');
    const message = () => Buffer.alloc(4e6, 'x').toString('latin1');
    const used = () => (collect(), process.memoryUsage().external);
    const before = used();
    const texts = Array.from({ length: 10 }, () => read({ source: '', reason: message() }).overIpc);
    let grown = used() - before;
    // Another thread frees what was collected, so a moment later.
    for (let turns = 0; grown >= 2e7 && turns < 200; turns++) {
      await turn();
      grown = used() - before;
    }
    assert.equal(texts[9].length, 200);
    assert.ok(grown < 2e7, `${grown} bytes`);
  });
});

it('counts by reason have at most 32 reasons; others are counted together', () => {
  const counts = new Map();
  for (let i = 0; i < 1000; i++) countReason(counts, `reason ${i}`);
  countReason(counts, 'reason 0');
  assert.equal(counts.size, 33);
  assert.equal(counts.get('reason 0'), 2);
  assert.equal(counts.get('other'), 968);
});
