'use strict';

// Runs the tests of one area, or the files and folders that are named:
//   node scripts/run-tests.js [library|faults|tools|package|long] [file or folder ...]
//
// Each file runs in a process of its own, several at a time. Files named *.alone.test.js measure or load the
// machine, so they run one at a time after all others. No shell has to expand `*`: this works in cmd.exe.
//
//   TEST_LANES=<n>         how many files run in parallel
//   TEST_FILE_SECONDS=<n>  how long a file may take

const { setMaxListeners } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { run } = require('node:test');
const { spec } = require('node:test/reporters');

const ROOT = path.join(__dirname, '..');
const TESTS = path.join(ROOT, 'test');

/** The folders of test/ by area; `library` is everything else. */
const FOLDERS = { faults: ['faults'], tools: ['tools'], package: ['package', 'docs'], long: ['long'] };

// Test files with child processes wait much of the time, so there may be more of them than cores.
const LANES_PER_CORE = 2;

// Much longer than any file takes: only a file that hangs exceeds this.
const FILE_TIMEOUT_MINUTES = { library: 15, faults: 15, tools: 15, package: 15, long: 90 };

/**
 * @param {string} folder
 * @returns {string[]} absolute paths of the test files, sorted
 */
function testFilesIn(folder) {
  return fs
    .readdirSync(folder, { recursive: true })
    .map(name => path.join(folder, String(name)))
    .filter(file => file.endsWith('.test.js') && !file.includes('node_modules'))
    .sort();
}

/**
 * @param {string} area
 * @returns {string[]}
 */
function testFilesOf(area) {
  if (area !== 'library') return FOLDERS[area].flatMap(name => testFilesIn(path.join(TESTS, name)));
  const others = Object.values(FOLDERS).flatMap(names =>
    names.map(name => path.join(TESTS, name) + path.sep),
  );
  return testFilesIn(TESTS).filter(file => !others.some(folder => file.startsWith(folder)));
}

/**
 * @param {string[]} words of the command line
 * @returns {{files: string[], timeout: number}} which test files to run, and how many milliseconds each may
 *   take
 */
function chosenFiles(words) {
  const [first = 'library', ...rest] = words;
  const isArea = first in FILE_TIMEOUT_MINUTES;
  const named = isArea ? rest : words;
  const files = named
    .map(name => path.resolve(name))
    .flatMap(name => (fs.statSync(name).isDirectory() ? testFilesIn(name) : [name]));
  const seconds = Number(process.env.TEST_FILE_SECONDS) || 60 * FILE_TIMEOUT_MINUTES[isArea ? first : 'long'];
  return { files: named.length > 0 ? files : testFilesOf(first), timeout: seconds * 1000 };
}

/**
 * Node.js 20 parses the file of NODE_EXTRA_CA_CERTS when a process starts, which can take three times as long
 * as everything else of a start. Only the tests that install packages connect to a server with TLS.
 *
 * @param {string[]} files
 */
function leaveOutCertificates(files) {
  const usesNpm = ['package', 'long'].map(name => path.join(TESTS, name) + path.sep);
  if (files.some(file => usesNpm.some(folder => file.startsWith(folder)))) return;
  delete process.env.NODE_EXTRA_CA_CERTS;
}

/**
 * Slow files start first, so that no core is idle at the end.
 *
 * @param {string[]} files
 */
function slowestFirst(files) {
  const isSlow = file => file.includes(`${path.sep}processes${path.sep}`) || file.includes('property-');
  return [...files.filter(isSlow), ...files.filter(file => !isSlow(file))];
}

/**
 * Counts tests as Node's own summary does, over several runs, and collects the names of those that were
 * skipped or failed.
 */
class Summary {
  #counts = { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 };
  /** @type {string[]} */
  #failures = [];
  /** @type {string[]} the tests and suites that were skipped, and why */
  #skips = [];
  /** @type {Set<string>} files of which at least one test was reported */
  #reported = new Set();

  get failed() {
    return this.#failures.length > 0;
  }

  /**
   * @param {any} event 'test:pass' or 'test:fail' of node:test
   * @param {boolean} passed
   */
  add({ name, file, line, details, skip, todo }, passed) {
    const failure = details.error?.failureType;
    // Node reports a file under its own path if it crashes, hangs, or contains no test.
    const isFile = path.resolve(name) === file;
    if (!isFile) this.#reported.add(file);
    const place = path.relative(ROOT, file ?? '');
    if (isSet(skip)) this.#skips.push(`${place}:${line} ${name}${skip === true ? '' : `: ${skip}`}`);
    if (details.type === 'suite') this.#counts.suites++;
    else if (!isFile || !passed) this.#countTest({ failure, skip, todo }, passed);
    // A suite fails with its tests, which are named one by one.
    if (passed || isSet(todo) || (details.type === 'suite' && failure === 'subtestsFailed')) return;
    if (!isFile) this.#failures.push(`${place}:${line} ${name}`);
    else
      this.#failures.push(
        `${place} ${failure === 'testTimeoutFailure' ? 'took too long' : 'failed as a whole'}`,
      );
  }

  #countTest({ failure, skip, todo }, passed) {
    this.#counts.tests++;
    if (isSet(skip)) this.#counts.skipped++;
    else if (isSet(todo)) this.#counts.todo++;
    else if (passed) this.#counts.pass++;
    else if (failure === 'cancelledByParent') this.#counts.cancelled++;
    else this.#counts.fail++;
  }

  /** @param {string} file that has ended */
  checkHasTests(file) {
    const place = path.relative(ROOT, file);
    if (this.#reported.has(file) || this.#failures.some(text => text.startsWith(place))) return;
    this.#counts.fail++;
    this.#failures.push(`${place} contains no test`);
  }

  /** @param {number} milliseconds */
  toText(milliseconds) {
    const counts = Object.entries({ ...this.#counts, duration_ms: Math.round(milliseconds) });
    const lines = counts.map(([name, count]) => `ℹ ${name} ${count}`);
    if (this.#skips.length > 0) lines.push('', 'skipped:', ...this.#skips.map(text => `﹣ ${text}`));
    if (this.failed) lines.push('', 'failed:', ...this.#failures.map(text => `✖ ${text}`));
    return `${lines.join('\n')}\n`;
  }
}

/** @param {boolean | string | undefined} mark `skip` or `todo` of a test: true, or the reason */
function isSet(mark) {
  return mark !== undefined && mark !== false;
}

/** Leaves out the counts that Node appends to each run; the summary of all runs has them. */
async function* withoutCounts(events) {
  const isCount = ({ message, nesting }) =>
    nesting === 0 && /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/.test(message);
  for await (const event of events) {
    if (event.type !== 'test:diagnostic' || !isCount(event.data)) yield event;
  }
}

/**
 * @param {string[]} files
 * @param {{concurrency: number, timeout: number, summary: Summary}} options
 */
async function runFiles(files, { concurrency, timeout, summary }) {
  if (files.length === 0) return;
  const watchdog = new AbortController();
  setMaxListeners(0, watchdog.signal); // one for each file
  const events = run({ files, concurrency, timeout, signal: watchdog.signal });
  // Node 24 reports a file that hangs as timed out but does not stop it. It reports nothing more after that.
  const timer = setTimeout(() => watchdog.abort(), 2 * timeout);
  events.on('data', () => timer.refresh());
  events.on('test:pass', event => summary.add(event, true));
  events.on('test:fail', event => summary.add(event, false));
  const report = events.compose(withoutCounts).compose(spec);
  for await (const text of report) process.stdout.write(text);
  clearTimeout(timer);
  for (const file of files) summary.checkHasTests(file);
}

async function main() {
  const start = performance.now();
  const { files, timeout } = chosenFiles(process.argv.slice(2));
  leaveOutCertificates(files);
  const isAlone = file => file.endsWith('.alone.test.js');
  const lanes = Number(process.env.TEST_LANES) || Math.ceil(os.availableParallelism() * LANES_PER_CORE);
  const summary = new Summary();
  const sideBySide = slowestFirst(files.filter(file => !isAlone(file)));
  await runFiles(sideBySide, { concurrency: Math.max(lanes, 2), timeout, summary });
  await runFiles(files.filter(isAlone), { concurrency: 1, timeout, summary });
  process.stdout.write(summary.toText(performance.now() - start));
  if (summary.failed) process.exitCode = 1;
}

void main();
