'use strict';

// A process is warned of metrics that another Prometheus client has, or another copy of this one.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');

const { copyPackage, makePlace, startCluster } = require('../fixtures/cluster-harness');
const { Program } = require('../fixtures/program');

const ROOT = path.join(__dirname, '../..');
const WARNING = /\[PROM_CLIENT_CLUSTER_COPY\] Warning: (.*)$/gm;

/**
 * An application with this library, and with a package `pinning` that has another client of its own.
 *
 * @param {import('node:test').TestContext} t
 * @param {(directory: string) => void} [install] the other client, default prom-client
 */
function application(t, install = installStock) {
  const place = makePlace(t);
  const modules = path.join(place, 'node_modules');
  copyPackage(t, { to: path.join(modules, 'prom-client') });
  const pinning = path.join(modules, 'pinning');
  install(path.join(pinning, 'node_modules/prom-client'));
  fs.writeFileSync(path.join(pinning, 'index.js'), "module.exports = require('prom-client');");
  for (const name of ['tdigest', 'bintrees', '@opentelemetry'])
    fs.symlinkSync(path.join(ROOT, 'node_modules', name), path.join(modules, name));
  return place;
}

/** @param {string} directory */
function installStock(directory) {
  fs.cpSync(path.join(ROOT, 'node_modules/prom-client'), directory, { recursive: true });
}

/**
 * @param {string} place of an application
 * @param {string} code
 * @param {string} [type] of its modules
 * @returns {Promise<string[]>} the warnings
 */
async function warningsOf(place, code, type = 'commonjs') {
  fs.writeFileSync(path.join(place, `program.${type === 'module' ? 'mjs' : 'cjs'}`), code);
  const program = new Program([`program.${type === 'module' ? 'mjs' : 'cjs'}`], { cwd: place });
  assert.equal(await program.ended(), 0, program.errors);
  return Array.from(program.errors.matchAll(WARNING), ([, text]) => text);
}

const LOAD = `
  const client = require('prom-client');
  const other = require('pinning');
  const count = name => new other.Counter({ name, help: 'h' });`;

describe('a process in which another copy has metrics', () => {
  it('a process in which another copy has metrics is warned once, with the package that has loaded it', async t => {
    const place = application(t);
    const warnings = await warningsOf(
      place,
      `${LOAD}
      (async () => {
        await client.register.metrics();
        count('early_total');
        for (let i = 0; i < 8; i++) await client.register.metrics();
      })();`,
    );
    assert.equal(warnings.length, 1);
    const directory = path.join(fs.realpathSync(place), 'node_modules/pinning/node_modules/prom-client');
    assert.ok(warnings[0].includes(`${directory}, used by the package pinning.`), warnings[0]);
    assert.match(warnings[0], /prom-client-cluster doctor/);
  });

  it('a process in which another copy has metrics is warned if ES modules have loaded both', async t => {
    const place = application(t);
    const [warning] = await warningsOf(
      place,
      `import client from 'prom-client';
      import other from './node_modules/pinning/node_modules/prom-client/index.js';
      new other.Counter({ name: 'early_total', help: 'h' });
      await client.register.metricsBytes();`,
      'module',
    );
    assert.match(warning, /used by the package pinning\./);
  });

  it('a process in which the application itself uses another copy is warned with its file', async t => {
    const place = application(t);
    const [warning] = await warningsOf(
      place,
      `const client = require('prom-client');
      const other = require('./node_modules/pinning/node_modules/prom-client');
      other.collectDefaultMetrics();
      client.register.metrics();`,
    );
    assert.ok(warning.includes(`used by ${path.join(fs.realpathSync(place), 'program.cjs')}.`), warning);
  });

  it('a process in which two copies of this library have metrics is warned once', async t => {
    const place = application(t, to => copyPackage(t, { to }));
    const warnings = await warningsOf(
      place,
      `${LOAD}
      count('other_total');
      new client.Counter({ name: 'own_total', help: 'h' });
      (async () => {
        await other.register.metrics();
        await client.register.metrics();
      })();`,
    );
    assert.equal(warnings.length, 1);
  });

  it('a worker in which another copy has metrics is warned when the cluster is scraped', async t => {
    const cluster = await startCluster(t, {
      workers: 1,
      worker: { start: ({ require }) => void require('prom-client').collectDefaultMetrics() },
    });
    await cluster.scrape();
    await cluster.end();
    assert.equal(cluster.output.match(WARNING)?.length, 1, cluster.output);
  });
});

describe('a process is not warned', () => {
  it('a process is not warned of a copy without metrics, nor of one that was loaded anew', async t => {
    const warnings = await warningsOf(
      application(t),
      `${LOAD}
      client.collectDefaultMetrics();
      for (const file of Object.keys(require.cache)) delete require.cache[file];
      const anew = require('prom-client');
      anew.collectDefaultMetrics();
      require('pinning');
      anew.register.metrics();`,
    );
    assert.deepEqual(warnings, []);
  });

  it('a process is not warned of a copy whose registry is merged with its own', async t => {
    const warnings = await warningsOf(
      application(t),
      `${LOAD}
      count('other_total');
      client.Registry.merge([client.register, other.register]).metrics();`,
    );
    assert.deepEqual(warnings, []);
  });

  it('a process is not warned if another copy of this library is on the page of an AggregatorRegistry', async t => {
    const warnings = await warningsOf(
      application(t, to => copyPackage(t, { to })),
      `const client = require('prom-client');
      const aggregator = new client.AggregatorRegistry();
      const other = require('pinning');
      client.collectDefaultMetrics();
      other.collectDefaultMetrics();
      (async () => {
        const page = await aggregator.clusterMetrics();
        if (!page.includes('process_cpu_seconds_total')) throw new Error(page);
        await client.register.metrics();
      })();`,
    );
    assert.deepEqual(warnings, []);
  });
});
