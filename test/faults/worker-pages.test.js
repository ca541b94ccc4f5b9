'use strict';

// The cluster's page, asked for in a worker, if it cannot be written to a file, or not by a thread.

const assert = require('node:assert/strict');
const { describe, it } = require('node:test');

const { startCluster, copyPackage, preloadFile, READ_ONLY } = require('../fixtures/cluster-harness.js');
const { counting, page, pagesIn } = require('../fixtures/page-worker.js');

describe('the page from a worker without a file', () => {
  /** Not ASCII. */
  const series = 100;
  const fill = ({ client }, series) => {
    const counter = new client.Counter({ name: 'series_total', help: 'h', labelNames: ['of'] });
    for (let of = 0; of < series; of++) counter.inc({ of: `ünïcode ☃ ${of}` });
  };
  const inMessages = ({ state }) => state.messages.splice(0).filter(({ page }) => page !== undefined).length;

  for (const inPlace of process.env.EVERY_VARIANT ? [false, true] : [false]) {
    it(`the page from a worker without a file comes in a message if no directory can be written${inPlace ? ', in place' : ''}`, async t => {
      const preload = preloadFile(t, READ_ONLY);
      const env = inPlace ? { NODE_OPTIONS: `--require ${preload}` } : {};
      const setup = { threadPreload: preload, env, options: { inPlace } };
      const cluster = await startCluster(t, { workers: 2, worker: counting, ...setup });
      await cluster.inWorker(1, fill, series);
      const text = await cluster.inWorker(2, page);
      assert.equal(text, await cluster.text());
      assert.equal(await cluster.inWorker(2, inMessages), 1);
      await cluster.end();
    });
  }

  it('the page from a worker without a file comes in a message if the disk is full, and leaves no partial file', async t => {
    const threadPreload = preloadFile(
      t,
      `const fs = require('node:fs');
      const { openSync, writeSync } = fs;
      const pages = new Set();
      fs.openSync = (file, ...given) => {
        const descriptor = openSync(file, ...given);
        if (String(file).endsWith('.page')) pages.add(descriptor);
        else pages.delete(descriptor);
        return descriptor;
      };
      fs.writeSync = (descriptor, ...given) => {
        if (!pages.has(descriptor)) return writeSync(descriptor, ...given);
        writeSync(descriptor, given[0].subarray(0, 100));
        throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
      };`,
    );
    const cluster = await startCluster(t, { workers: 1, worker: counting, threadPreload });
    assert.equal(await cluster.inWorker(1, page), await cluster.text());
    assert.equal(await cluster.inWorker(1, inMessages), 1);
    assert.deepEqual(pagesIn(cluster.spool), []);
    await cluster.end();
  });
});

it('a page that a worker cannot read is an error that says why, and status 503', async t => {
  const cluster = await startCluster(t, { workers: 1, worker: counting });
  // While the first thread starts there is no directory, so the page would come in a message.
  await cluster.scrape();
  const failures = await cluster.inWorker(1, async ({ require, state }) => {
    const fs = require('node:fs');
    const { openSync } = fs;
    fs.openSync = (file, ...given) => {
      if (String(file).endsWith('.page'))
        throw Object.assign(new Error('EMFILE: secret'), { code: 'EMFILE' });
      return openSync(file, ...given);
    };
    const failure = await state.page().catch(error => error);
    fs.openSync = openSync;
    return [failure.message, failure[Symbol.for('prom-client-cluster.unavailable.v1')]];
  });
  assert.deepEqual(
    failures,
    Array(2).fill('The page that the primary has written cannot be read in this process: EMFILE.'),
  );
  assert.equal(await cluster.inWorker(1, page), await cluster.text());
  assert.deepEqual(pagesIn(cluster.spool), []);
  await cluster.end();
});

it('the page from a worker is written in slices in place, and any copy of the package in the worker gets it', async t => {
  const copy = copyPackage(t);
  const cluster = await startCluster(t, { workers: 1, worker: counting, options: { inPlace: true } });
  const [texts, messages] = await cluster.inWorker(
    1,
    async ({ require, state }, copy) => {
      const second = require(copy);
      const gzipped = await new second.AggregatorRegistry({ timeout: 60_000 }).clusterMetricsBytes({
        gzip: true,
      });
      const texts = [await state.page(), require('node:zlib').gunzipSync(gzipped).toString()];
      return [texts, state.messages.filter(({ file }) => file).length];
    },
    copy,
  );
  assert.deepEqual(texts, Array(2).fill(await cluster.text()));
  assert.equal(messages, 2);
  assert.deepEqual(pagesIn(cluster.spool), []);
  await cluster.end();
});
