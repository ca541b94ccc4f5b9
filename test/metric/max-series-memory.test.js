'use strict';

const assert = require('node:assert/strict');
const { execFileSync } = require('node:child_process');
const path = require('node:path');
const { it } = require('node:test');

const ROOT = path.join(__dirname, '../..');

it('label sets beyond maxSeries take no memory: 400,000 of them as little as 100,000', () => {
  const program = `
    const { Counter } = require(${JSON.stringify(ROOT)});
    const metric = new Counter({ name: 'm', help: 'h', labelNames: ['path', 'user'], maxSeries: 1000 });
    let next = 0;
    function record(until) {
      for (; next < until; next++) {
        const labels = { path: '/path/' + next, user: 'user-' + next };
        if (next % 4 === 0) metric.labels(labels).inc();
        else metric.inc(labels);
      }
    }
    function bytes() {
      for (let i = 0; i < 3; i++) gc();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    }
    record(100_000);
    const before = bytes();
    record(400_000);
    const after = bytes();
    metric.get().then(({ values }) =>
      console.log(JSON.stringify({ grown: after - before, series: values.length, last: values.at(-1).value })));
  `;
  const output = execFileSync(process.execPath, ['--expose-gc', '-e', program], { encoding: 'utf8' });
  const { grown, series, last } = JSON.parse(output);
  assert.deepEqual({ series, last }, { series: 1001, last: 399_000 });
  // 300,000 label sets would take more than 30 MB.
  assert.ok(grown < 4e6, `it has grown by ${grown} bytes`);
});
