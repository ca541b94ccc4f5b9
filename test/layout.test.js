'use strict';

// Which folder of lib/ may load which: the table in docs/internals/architecture.md. A folder of lib/cluster
// is a place where code runs, so a forbidden import is code of one thread or process that reaches into
// another's.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path').posix;
const { describe, it } = require('node:test');

const LIB = path.join(__dirname, '../lib');
const ARCHITECTURE = fs.readFileSync(path.join(__dirname, '../docs/internals/architecture.md'), 'utf8');

/** What `lib/threads`, `lib/cluster` and its folders may load besides what the table says. */
const ANYWHERE = ['options', 'event-loop', 'series', 'exposition', 'registry', 'metric'];

/** By folder: the folders that its files may load, besides itself, by docs/internals/architecture.md. */
const MAY_LOAD = Object.fromEntries(
  Array.from(ARCHITECTURE.matchAll(/^\| `lib\/([a-z/-]+)` .* \| ([^|]*)\|$/gm), ([, folder, cell]) => {
    const names = cell.replace(/\(.*?\)/g, '').match(/[a-z/-]+/g) ?? [];
    const folders = names.flatMap(name => [name, `cluster/${name}`].find(isFolder) ?? []);
    return [
      folder,
      /^(threads|cluster|source|store|aggregator|spool)\b/.test(folder) ? [...folders, ...ANYWHERE] : folders,
    ];
  }),
);

/** @param {string} name below lib/ */
function isFolder(name) {
  return fs.existsSync(path.join(LIB, name));
}

/** Node's modules that a folder must not load: the store is memory only. */
const NOT_OF_NODE = { store: /^(node:)?(fs|worker_threads|timers)(\/|$)/ };
/** The aggregator's two entry files; the primary loads nothing else of the thread's. */
const ENTRY_FILES = /^aggregator\/(aggregator-thread|in-place-backend)$/;

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

/** What only some programs load: those that have one of these. `users` are files which are for these only. */
const OF_SOME = {
  'native histograms': {
    files:
      /(native-(histogram|index|json|buckets)|(merged|mirror|family|captured)-buckets|bucket-(rows|encoder|memory))$/,
    users: /protobuf|write-request/,
  },
  'metrics with maxIdleSeconds': { files: /expiring-table$/, users: /^$/ },
};

describe('layout of lib/', () => {
  const all = loads();
  for (const folder of new Set(all.map(load => load.folder))) {
    it(`${folder} loads only what docs/internals/architecture.md allows`, () => {
      for (const { file, target } of all.filter(load => load.folder === folder)) {
        if (!target.startsWith('.')) {
          assert.ok(!NOT_OF_NODE[folder]?.test(target), `${file} loads ${target}`);
          continue;
        }
        const loaded = path.join(folder, target);
        const from = path.dirname(loaded);
        assert.ok(from === folder || MAY_LOAD[folder]?.includes(from), `${file} loads ${loaded}`);
        if (folder === 'cluster/primary' && from === 'aggregator') assert.match(loaded, ENTRY_FILES);
      }
    });
  }

  for (const [what, { files, users }] of Object.entries(OF_SOME)) {
    it(`what only ${what} need is loaded by them`, () => {
      const before = new Set(
        all.map(({ file }) => file).filter(file => !files.test(file.replace('.js', ''))),
      );
      const loading = [...before].filter(file => {
        if (users.test(file)) return false;
        const code = fs.readFileSync(path.join(LIB, file), 'utf8');
        // In a function, a line does not begin with it.
        return Array.from(code.matchAll(/^const [^=]*= require\('(.*)'\);$/gm)).some(([, target]) =>
          files.test(target),
        );
      });
      assert.deepEqual(loading, []);
    });
  }

  it('the imports that docs/internals/architecture.md allows point in one direction', () => {
    const reached = (folder, before = []) => {
      assert.ok(!before.includes(folder), [...before, folder].join(' -> '));
      for (const next of MAY_LOAD[folder]) reached(next, [...before, folder]);
    };
    Object.keys(MAY_LOAD).forEach(folder => reached(folder));
  });
});
