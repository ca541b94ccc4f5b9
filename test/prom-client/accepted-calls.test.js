'use strict';

// What prom-client accepts never throws here, what it prints is printed, and what it refuses is refused with
// the same text: tens of thousands of calls with odd arguments on both libraries. A row of
// docs/differences.md names each exception.

const { test, before, after, mock } = require('node:test');
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { inspect, isDeepStrictEqual } = require('node:util');
const reference = require('prom-client');
const subject = require('../..');
const { inStubbedWorld } = require('./fixtures/property-stubbed-world');
const {
  differenceOf,
  throwsHere,
  used,
  THROWS_HERE,
  ACCEPTED_HERE,
  PRINTS_HERE,
} = require('./fixtures/odd-call-differences');
const oddCalls = require('./fixtures/odd-calls');

const DIFFERENCES = fs.readFileSync(path.join(__dirname, '../../docs/differences.md'), 'utf8');

/** The texts of the warnings, by what they are about. */
const warnings = new Map();
let calls = 0;

/** Result, page or error of a call. */
async function outcomeOf(client, { run }, name) {
  let made;
  try {
    made = await run(client, name);
  } catch (error) {
    return { error: `${error.constructor?.name}: ${error.message}` };
  } finally {
    client.register.clear();
  }
  if ('result' in made) return { page: printed(made.result) };
  try {
    return { page: await made.metrics() };
  } catch (error) {
    return { rejects: String(error.message) };
  }
}

function printed(result) {
  try {
    return inspect(result, { depth: 6 });
  } catch {
    return 'a value that cannot be printed';
  }
}

/** What is wrong with a call; undefined if nothing is. */
async function faultOf(call, name) {
  const ours = await outcomeOf(subject, call, name);
  const theirs = await outcomeOf(reference, call, name);
  if (ours.error !== undefined && theirs.error === undefined) {
    return throwsHere(call) ? undefined : { throwsOnlyHere: ours.error, theirs };
  }
  if (isDeepStrictEqual(ours, theirs)) return undefined;
  return differenceOf(call, ours, theirs, warnings.get(`Metric ${name}`));
}

before(() => {
  mock.method(process, 'emitWarning', (text, { code }) => {
    assert.ok(code.startsWith('PROM_CLIENT_'), code);
    const [about] = text.split(': ', 1);
    if (code === 'PROM_CLIENT_CLUSTER_CALLS') {
      assert.ok(!warnings.has(about), `twice: ${text}`);
      assert.match(text, /, first at .*odd-calls\.js:\d+:\d+\)?$/s);
    }
    warnings.set(about, text);
  });
});

after(() => mock.restoreAll());

for (const [kind, callsOf] of Object.entries(oddCalls)) {
  test(`what prom-client accepts does not throw, and is printed alike; what it refuses is refused: ${kind}`, () =>
    inStubbedWorld({}, async () => {
      const faults = [];
      for (const call of callsOf()) {
        const fault = await faultOf(call, `m${calls++}`);
        if (fault !== undefined) faults.push({ call: call.title, ...fault });
      }
      assert.deepStrictEqual(faults.slice(0, 20), [], `${faults.length} calls`);
    }));
}

test('some 80,000 calls have been compared', () => assert.ok(calls > 80_000, String(calls)));

test('docs/differences.md names what throws only here, in five rows at most', () => {
  const [, section] = /^### Throws here$(.*?)^### /ms.exec(DIFFERENCES);
  const rows = section
    .split('\n')
    .filter(line => line.startsWith('| '))
    .slice(2);
  assert.ok(rows.length <= 5, String(rows.length));
  for (const { row } of THROWS_HERE)
    assert.ok(
      rows.some(text => text.includes(row)),
      row,
    );
});

test('docs/differences.md names each other exception that is needed, and no exception is left over', () => {
  const entries = [...ACCEPTED_HERE, ...PRINTS_HERE];
  for (const { row } of entries) assert.ok(DIFFERENCES.includes(row), row);
  for (const entry of [...THROWS_HERE, ...entries]) assert.ok(used.has(entry), entry.row);
});
