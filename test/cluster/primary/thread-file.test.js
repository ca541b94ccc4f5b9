'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { afterEach, it } = require('node:test');
const { pathToFileURL } = require('node:url');

const { findThread } = require('../../../lib/cluster/primary/thread-file');
const { copyPackage, makePlace } = require('../../fixtures/cluster-harness');

const OWN = path.join(__dirname, '../../../lib/aggregator/aggregator-thread.js');
const BUNDLED = 'prom-client-cluster-thread.mjs';
const { argv } = process;
afterEach(() => (process.argv = argv));

it("the thread's file is the package's own", () => {
  assert.deepEqual(findThread(undefined), { main: OWN, isCode: false });
});

it("the thread's file is the one that the application names, by a path or a URL", () => {
  const url = pathToFileURL(__filename);
  for (const file of [__filename, path.relative('', __filename), url, url.href])
    assert.deepEqual(findThread(file), { main: __filename, isCode: false });
});

it('no other file is taken if the one that the application names is missing', () => {
  const url = new URL('./missing.js', pathToFileURL(__filename));
  for (const file of ['/missing.js', url, 'file://a host/x.js', new URL('http://127.0.0.1/x.js')])
    assert.equal(findThread(file), undefined);
});

it("the thread's file is found next to the program if the package has none", t => {
  const place = makePlace(t);
  const library = copyPackage(t, { without: ['lib/aggregator/aggregator-thread.js'] });
  const copy = require(path.join(library, 'lib/cluster/primary/thread-file.js'));
  process.argv = [process.execPath, path.join(place, 'application.mjs')];
  assert.equal(copy.findThread(undefined), undefined);
  fs.writeFileSync(path.join(place, BUNDLED), '');
  assert.deepEqual(copy.findThread(undefined), { main: path.join(place, BUNDLED), isCode: false });
  process.argv = [process.execPath]; // as in a REPL
  assert.equal(copy.findThread(undefined), undefined);
});
