'use strict';

// The part of `npm run bench` that measures what default metrics cost a service: measures, prints, stores,
// documents.

const fs = require('node:fs');
const path = require('node:path');
const { describeMachine } = require('../shared/machine.js');
const { Progress } = require('../shared/progress.js');
const { resultsOf, writeResults } = require('../shared/results.js');
const { documentOf } = require('./document.js');
const { measureOverhead, stepsOf } = require('./measurement.js');
const { reportOf } = require('./report.js');

const NAME = 'runtime-overhead';
const DOCUMENT = path.join(__dirname, '..', '..', 'docs', 'internals', 'benchmark-runtime.md');
const CLUSTERS = 3;
const SECONDS = 1;

/**
 * @param {{short: boolean, only?: string[], clients?: string[]}} options of `npm run bench`
 * @returns {boolean} whether it is a part of that run. Not of a short one: it takes a minute and a half, and
 *   CI machines are too noisy for it
 */
function isOverheadWanted({ short, only, clients }) {
  if (short || !(clients?.includes('ours') ?? true)) return false;
  return only === undefined || only.some(beginning => NAME.startsWith(beginning));
}

/**
 * Measures, prints, and writes the results.
 *
 * @param {{repetitions?: number, seconds?: number}} options clusters one after the other; length of a window
 */
async function runOverhead({ repetitions = CLUSTERS, seconds = SECONDS }) {
  const machine = describeMachine();
  const date = new Date().toISOString();
  const settings = { clusters: repetitions, seconds };
  const progress = new Progress(stepsOf(settings), process.stderr);
  const clusters = await measureOverhead({ ...settings, progress });
  console.log(`## What default metrics cost the demo's service\n\n${reportOf(clusters)}\n`);
  const file = writeResults(NAME, { date, machine, seconds, clusters });
  console.log(`Written to ${path.relative(process.cwd(), file)}`);
}

/** Writes docs/internals/benchmark-runtime.md from the newest results, if any. */
async function writeOverheadDocument() {
  const { value: results } = resultsOf(NAME).next();
  if (results === undefined) return;
  fs.writeFileSync(DOCUMENT, await documentOf(results));
  console.log(`Written: ${path.relative(process.cwd(), DOCUMENT)}, from the results of ${results.date}`);
}

module.exports = { isOverheadWanted, runOverhead, writeOverheadDocument };
