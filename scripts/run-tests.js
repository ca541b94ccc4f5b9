'use strict';

// Runs the tests of one area:  node scripts/run-tests.js [library|tools|package|long] [file or folder ...]
// Files named on the command line replace the area. Works without a shell that expands `*`.
//
// Files run side by side, one process each. Those named *.alone.test.js measure the machine or load it, so they run
// one at a time after all others.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { run } = require('node:test');
const { spec } = require('node:test/reporters');

const ROOT = path.join(__dirname, '..');
const TESTS = path.join(ROOT, 'test');
/** Folders of test/ that are an area of their own; `library` is everything else. */
const AREAS = ['tools', 'package', 'long'];

/** @returns {string[]} absolute paths of the test files in `folder`, sorted */
function testFilesIn(folder) {
  return fs
    .readdirSync(folder, { recursive: true })
    .map(name => path.join(folder, String(name)))
    .filter(file => file.endsWith('.test.js') && !file.includes('node_modules'))
    .sort();
}

/** @returns {string[]} the test files that the command line asks for */
function chosenFiles([area = 'library', ...rest]) {
  if (AREAS.includes(area) && rest.length === 0) return testFilesIn(path.join(TESTS, area));
  if (area === 'library' && rest.length === 0) {
    const others = AREAS.map(name => path.join(TESTS, name) + path.sep);
    return testFilesIn(TESTS).filter(file => !others.some(folder => file.startsWith(folder)));
  }
  const named = AREAS.includes(area) || area === 'library' ? rest : [area, ...rest];
  return named
    .map(name => path.resolve(name))
    .flatMap(name => (fs.statSync(name).isDirectory() ? testFilesIn(name) : [name]));
}

/** Runs `files`, `concurrency` at a time, and sets the exit code when one fails. */
async function runFiles(files, concurrency) {
  if (files.length === 0) return;
  const stream = run({ files, concurrency });
  stream.on('test:fail', event => {
    if (event.todo === undefined || event.todo === false) process.exitCode = 1;
  });
  await new Promise((resolve, reject) => {
    const report = stream.compose(spec);
    report.on('end', resolve).on('error', reject).pipe(process.stdout, { end: false });
  });
}

async function main() {
  const files = chosenFiles(process.argv.slice(2));
  const alone = files.filter(file => file.endsWith('.alone.test.js'));
  await runFiles(
    files.filter(file => !alone.includes(file)),
    Math.max(2, os.availableParallelism()),
  );
  await runFiles(alone, 1);
}

void main();
