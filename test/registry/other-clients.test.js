'use strict';

// The debug log names other Prometheus clients that are loaded in the process.

const assert = require('node:assert/strict');
const path = require('node:path');
const { it } = require('node:test');

const { copyPackage, startCluster } = require('../fixtures/cluster-harness');
const { Program } = require('../fixtures/program');

const ROOT = path.join(__dirname, '../..');

/**
 * @param {string} library under test
 * @param {Record<string, string>} [env]
 * @returns {Promise<string[]>} directories in the debug log of a process that loads two more clients and
 *   scrapes twice
 */
async function logged(library, env) {
  const code = `
    import client from ${JSON.stringify(path.join(library, 'index.js'))};
    import ${JSON.stringify(path.join(ROOT, 'node_modules/prom-client/index.js'))};
    await client.register.metrics();
    await import(${JSON.stringify(path.join(ROOT, 'node_modules/@prometheus-io/client/index.js'))});
    for (let i = 0; i < 2; i++) await client.register.metricsBytes();`;
  const program = new Program(['--input-type=module', '--eval', code], { env });
  assert.equal(await program.ended(), 0, program.errors);
  return Array.from(program.errors.matchAll(/another Prometheus client .*: (.*)$/gm), ([, directory]) =>
    path.relative(ROOT, directory).replaceAll(path.sep, '/'),
  );
}

it('the debug log names each other client once, as CommonJS or as an ES module, but not the library itself', async t => {
  const library = copyPackage(t, { as: 'node_modules/prom-client' });
  assert.deepEqual(await logged(library, { NODE_DEBUG: 'prom-client-cluster' }), [
    'node_modules/prom-client',
    'node_modules/@prometheus-io/client',
  ]);
});

it('a worker of a cluster names them, too', async t => {
  const cluster = await startCluster(t, {
    workers: 1,
    env: { NODE_DEBUG: 'prom-client-cluster' },
    worker: { start: ({ require }) => void require('prom-client') },
  });
  await cluster.scrape();
  await cluster.end();
  assert.match(
    cluster.output,
    /another Prometheus client is loaded, .*: \S+[\\/]node_modules[\\/]prom-client$/m,
  );
});
