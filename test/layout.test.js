'use strict';

// Which folder of lib/ may load which. A folder of lib/cluster is a place where code runs, so a forbidden
// import is code of one thread or process that reaches into another's.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path').posix;
const { describe, it } = require('node:test');

const LIB = path.join(__dirname, '../lib');
const ANYWHERE = ['options', 'event-loop', 'series', 'exposition', 'registry', 'metric'];

/** By folder: the folders that its files may load, besides itself. */
const MAY_LOAD = {
  options: [],
  testing: [],
  'event-loop': [],
  series: [],
  exposition: ['event-loop'],
  registry: ['exposition', 'event-loop'],
  metric: ['options', 'registry', 'series'],
  http: ['options', 'registry', 'exposition', 'event-loop'],
  'remote-write': ['options', 'registry', 'exposition', 'event-loop'],
  runtime: ['options', 'runtime/families', 'runtime/sampling', 'registry', 'metric'],
  'runtime/families': ['runtime/sampling', 'runtime/sources', 'metric', 'registry'],
  'runtime/sampling': ['metric', 'registry', 'event-loop'],
  'runtime/sources': [],
  'cluster/wire': ANYWHERE,
  'cluster/capture': ['cluster/wire', ...ANYWHERE],
  'cluster/links': ['cluster/wire'],
  'cluster/worker': ['cluster/links', 'cluster/capture', 'cluster/wire', 'cluster/spool', ...ANYWHERE],
  'cluster/primary': ['cluster/capture', 'cluster/wire', 'cluster/spool', 'cluster/aggregator', ...ANYWHERE],
  'cluster/aggregator': ['cluster/store', 'cluster/spool', 'cluster/wire', 'remote-write', ...ANYWHERE],
  'cluster/store': ['cluster/wire', ...ANYWHERE],
  'cluster/spool': ['cluster/wire', 'event-loop', 'options'],
  threads: ['cluster', 'cluster/primary', 'cluster/worker', 'cluster/capture', ...ANYWHERE],
  'cluster/group': [
    'cluster/primary',
    'cluster/worker',
    'cluster/links',
    'cluster/spool',
    'cluster/wire',
    ...ANYWHERE,
  ],
  cluster: ['cluster/group', 'cluster/primary', 'cluster/worker', ...ANYWHERE],
};

/** Node's modules that a folder must not load: the store is memory only. */
const NOT_OF_NODE = { 'cluster/store': /^(node:)?(fs|worker_threads|timers)(\/|$)/ };
/** The aggregator's two entry files; the primary loads nothing else of the thread's. */
const ENTRY_FILES = /^cluster\/aggregator\/(aggregator-thread|in-place-backend)$/;

/**
 * @returns {{folder: string, file: string, target: string}[]} each require() in lib/, with its target as it
 *   is written
 */
function loads() {
  return fs.readdirSync(LIB, { recursive: true }).flatMap(name => {
    const file = String(name).replaceAll('\\', '/');
    const folder = path.dirname(file);
    if (!file.endsWith('.js') || folder === 'compat') return [];
    const code = fs.readFileSync(path.join(LIB, file), 'utf8').replace(/^\s*(\/\/|\*).*$/gm, '');
    const targets = Array.from(
      code.matchAll(/\brequire(?:\.resolve)?\(['"]([^'"]+)['"]\)/g),
      match => match[1],
    );
    return targets.map(target => ({ folder, file, target }));
  });
}

describe('layout of lib/', () => {
  const all = loads();
  for (const folder of new Set(all.map(load => load.folder))) {
    it(`${folder} loads only what the table allows`, () => {
      for (const { file, target } of all.filter(load => load.folder === folder)) {
        if (!target.startsWith('.')) {
          assert.ok(!NOT_OF_NODE[folder]?.test(target), `${file} loads ${target}`);
          continue;
        }
        const loaded = path.join(folder, target);
        const from = path.dirname(loaded);
        assert.ok(from === folder || MAY_LOAD[folder]?.includes(from), `${file} loads ${loaded}`);
        if (folder === 'cluster/primary' && from === 'cluster/aggregator') assert.match(loaded, ENTRY_FILES);
      }
    });
  }
});
