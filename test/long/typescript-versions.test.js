'use strict';

// The types on each version of TypeScript that is in use. Installs the compilers from the npm registry, so it
// is part of `npm run test:long`.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const { run, npm, makePlace } = require('../package/fixtures/drop-in-package');
const { SNIPPETS, writeSnippets, snippetName } = require('../package/fixtures/type-snippets');

const VERSIONS = ['4.7', '5.0', '5.2', '5.6', '6', '7'];
// Without the types of Node.js: those that are installed here are not for every version.
const OPTIONS = [
  '--typeRoots',
  'none',
  '--noEmit',
  '--strict',
  '--declaration',
  '--noImplicitOverride',
  '--target',
  'es2021',
];
const NODE16 = ['--module', 'node16', '--moduleResolution', 'node16'];

/** Beyond prom-client's types. */
const ADDITIONS = `
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry, Summary } from 'prom-client';
export class Metrics {
  constructor(
    readonly counter: Counter<'route'>,
    readonly gauge: Gauge<'route'>,
    readonly histogram: Histogram<'route'>,
    readonly summary: Summary<'route'>,
    readonly registry: Registry,
  ) {}
  use(): number {
    this.registry.setFormats(['openmetrics']);
    const stop = collectDefaultMetrics();
    stop();
    this.counter.value({ route: '/' })?.toFixed();
    this.gauge.trackInProgress({ route: '/' }, () => 1).toFixed();
    this.summary.time(() => 'text').slice(1);
    // @ts-expect-error: no such label
    this.histogram.time({ path: '/' }, () => 1);
    // @ts-expect-error: no number
    this.histogram.time(() => 'text').toFixed();
    return this.histogram.time({ route: '/' }, () => 1);
  }
}`;

const place = makePlace({ after });

before(async () => {
  const aliases = VERSIONS.map(version => `typescript-${version}@npm:typescript@${version}`);
  fs.writeFileSync(path.join(place, 'package.json'), '{"name": "compilers", "private": true}');
  await npm(['install', ...aliases], place);
  writeSnippets(place, ['ts']);
  fs.writeFileSync(path.join(place, 'ours/additions.ts'), ADDITIONS);
});

/**
 * @param {string} version of TypeScript
 * @param {'theirs' | 'ours'} library
 * @param {string[]} files
 * @returns {Promise<string[]>} lines that name an error
 */
async function errorsOf(version, library, files) {
  const tsc = path.join(place, `node_modules/typescript-${version}/bin/tsc`);
  const args = [tsc, ...OPTIONS, ...NODE16, ...files];
  const { stdout } = await run(process.execPath, args, { cwd: path.join(place, library) }).catch(
    error => error,
  );
  return stdout.split('\n').filter(line => line.includes('error TS'));
}

for (const version of VERSIONS) {
  describe(`TypeScript ${version}`, () => {
    it(`each snippet that compiles with prom-client's types compiles with ours in TypeScript ${version}`, async () => {
      const files = SNIPPETS.map((_, i) => snippetName(i, 'ts'));
      const theirs = await errorsOf(version, 'theirs', files);
      const isOfTheirs = line => theirs.some(other => other.split('(')[0] === line.split('(')[0]);
      assert.ok(theirs.length < 5, theirs.join('\n'));
      const ours = await errorsOf(version, 'ours', files);
      const shown = ours.filter(line => !isOfTheirs(line));
      assert.deepEqual(shown, []);
    });

    it(`additions are called without an exclamation mark in TypeScript ${version}`, async () => {
      assert.deepEqual(await errorsOf(version, 'ours', ['additions.ts']), []);
    });
  });
}
