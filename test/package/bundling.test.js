'use strict';

// docs/bundling.md: each of its commands bundles an application with the library, with the file of the thread
// and without it. Whatever the bundler, a cluster has the right totals.

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const { ROOT, run, makePlace, pack, installAlone } = require('./fixtures/drop-in-package');

const DOCUMENT = fs.readFileSync(path.join(ROOT, 'docs/bundling.md'), 'utf8');
const PROGRAMS = path.join(__dirname, 'programs/node_modules');
const APPLICATION = fs.readFileSync(path.join(__dirname, 'fixtures/bundling-application.mjs'), 'utf8');
const THREAD = /^prom-client-cluster-thread\.[cm]?js$/;

const place = makePlace({ after });
/** @type {string} */
let tarball;
before(async () => ({ tarball } = await pack(place)));

/**
 * The files and commands of a section.
 *
 * @param {string} name
 * @returns {{files: Record<string, string>, commands: string[]}} the last line of each command runs the
 *   bundle
 */
function sectionOf(name) {
  const [, text] = DOCUMENT.split(`\n## ${name}\n`);
  const [section] = text.split('\n## ');
  const files = section.matchAll(/`([^`\n]+)`:\n\n```(?:javascript|json)\n([^]*?)```/g);
  return {
    files: Object.fromEntries(Array.from(files, ([, file, code]) => [file, code])),
    commands: Array.from(section.matchAll(/```sh\n([^]*?)```/g), ([, command]) => command.trim()),
  };
}

/**
 * An application in a directory of its own, which has the library as `client`, and the files of a section.
 *
 * @param {Record<string, string>} files
 * @param {{client?: string, type?: string}} [options]
 */
async function makeApplication(files, { client = 'prom-client', type } = {}) {
  const application = fs.mkdtempSync(path.join(place, 'application-'));
  await installAlone(tarball, application, client);
  fs.symlinkSync(path.join(PROGRAMS, '@rollup'), path.join(application, 'node_modules/@rollup'), 'junction');
  const all = {
    'package.json': JSON.stringify({ name: 'application', private: true, type }),
    'src/app.js': APPLICATION.replace("'prom-client'", `'${client}'`),
    ...files,
  };
  for (const [file, text] of Object.entries(all)) {
    fs.mkdirSync(path.dirname(path.join(application, file)), { recursive: true });
    fs.writeFileSync(path.join(application, file), text);
  }
  return application;
}

/**
 * @param {string} application
 * @param {string} command
 * @returns {Promise<{aggregator: string, aggregatorReason: string, total: string, inPlace: string}[]>} what
 *   the bundle has printed
 */
async function runIn(application, command) {
  const PATH = `${path.join(PROGRAMS, '.bin')}${path.delimiter}${process.env.PATH}`;
  const { stdout } = await run('bash', ['-e', '-c', command], { cwd: application, env: { PATH } });
  const lines = stdout.split('\n').filter(line => line.startsWith('{"text"'));
  return lines.map(line => {
    const { text, ...state } = JSON.parse(line);
    assert.doesNotMatch(text, /^prom_client_cluster_refused_answers_total\{.*\} [1-9]/m);
    const [, total] = /^done_total (\d+)$/m.exec(text);
    const [, inPlace] = /^prom_client_cluster_in_place\{reason="(\w+)"\} 1$/m.exec(text) ?? [];
    return { ...state, total, inPlace };
  });
}

const inThread = { aggregator: 'thread', aggregatorReason: '', total: '3', inPlace: undefined };
const inPlace = { aggregator: 'in place', aggregatorReason: 'missing', total: '3', inPlace: 'missing' };
const inOneProcess = { aggregator: 'none', aggregatorReason: '', total: '3', inPlace: undefined };

/**
 * Bundles an application as a section says, and runs it: a cluster with and without the file of the thread,
 * and one process.
 *
 * @param {string} name of the section
 * @param {{command?: number, client?: string, type?: string}} [options]
 */
async function assertBundled(name, { command = 0, ...options } = {}) {
  const { files, commands } = sectionOf(name);
  const application = await makeApplication(files, options);
  const text = commands[command].replaceAll('prom-client/', `${options.client ?? 'prom-client'}/`);
  // Only what the bundle contains is left.
  const modules = path.join(application, 'node_modules');
  const hide = `mv node_modules ${path.join(place, `hidden-${path.basename(application)}`)}`;
  const lines = text.split('\n');
  const start = lines.pop();
  assert.deepStrictEqual(await runIn(application, [...lines, hide, start].join('\n')), [inThread, inThread]);
  assert.ok(!fs.existsSync(modules));
  assert.deepStrictEqual(await runIn(application, `${start} single`), [inOneProcess]);
  const dist = path.join(application, 'dist');
  const threads = fs.readdirSync(dist).filter(file => THREAD.test(file));
  assert.strictEqual(threads.length, 1);
  // Not removed, because Rollup and Vite may load parts of it from the application.
  fs.renameSync(path.join(dist, threads[0]), path.join(dist, `another-${threads[0]}`));
  assert.deepStrictEqual(await runIn(application, start), [inPlace, inPlace]);
}

describe('a bundle made as docs/bundling.md says', () => {
  it('esbuild, CommonJS', () => assertBundled('esbuild'));
  it('esbuild, ES module', () => assertBundled('esbuild', { command: 1 }));
  it('esbuild, with the library under its own name', () =>
    assertBundled('esbuild', { client: 'prom-client-cluster' }));
  it('Rollup', () => assertBundled('Rollup'));
  it('Vite', () => assertBundled('Vite'));
  it('webpack', () => assertBundled('webpack'));
  it('ncc, CommonJS', () => assertBundled('ncc'));
  it('ncc, ES module', () => assertBundled('ncc', { type: 'module' }));

  it('a bundle with the file of the thread elsewhere, which the application names', async () => {
    const application = await makeApplication({});
    const [, named] = /```javascript\n(new AggregatorRegistry.*);\n```/.exec(DOCUMENT);
    const source = path.join(application, 'src/app.js');
    fs.writeFileSync(source, APPLICATION.replace('new AggregatorRegistry()', named));
    const [, command] = sectionOf('esbuild').commands;
    const moved = `mv dist/prom-client-cluster-thread.mjs dist/thread.mjs\nnode dist/app.mjs`;
    const printed = await runIn(application, command.replace('node dist/app.mjs', moved));
    assert.deepStrictEqual(printed, [inThread, inThread]);
  });

  const seaSkip = process.platform !== 'linux' && 'tried on Linux only';
  it('a single executable, with the thread as an asset', { skip: seaSkip }, async () => {
    const { files, commands } = sectionOf('Single executable');
    const application = await makeApplication(files);
    const [bundle] = sectionOf('esbuild').commands;
    const lines = [...bundle.split('\n').slice(0, -1), ...commands[0].split('\n')];
    const start = lines.pop();
    // Away from the bundles: the executable has all that it needs.
    const elsewhere = fs.mkdtempSync(path.join(place, 'executable-'));
    const executable = path.join(elsewhere, 'app');
    const printed = await runIn(application, [...lines, `mv ${start} ${executable}`, executable].join('\n'));
    assert.deepStrictEqual(printed, [inThread, inThread]);
    assert.deepStrictEqual(await runIn(application, `${executable} single`), [inOneProcess]);
  });
});

it('the tool with which Next.js collects the files of an application finds the file of the thread', async () => {
  const application = await makeApplication({});
  const { nodeFileTrace } = require(path.join(PROGRAMS, '@vercel/nft'));
  const { fileList } = await nodeFileTrace([path.join(application, 'src/app.js')], { base: application });
  const thread = 'node_modules/prom-client/lib/aggregator/aggregator-thread.js';
  assert.ok(fileList.has(path.normalize(thread)), [...fileList].join());
});

it('every bundler of docs/bundling.md is tried', () => {
  const names = Array.from(DOCUMENT.matchAll(/^## (.*)$/gm), ([, name]) => name);
  assert.deepStrictEqual(names, [
    'esbuild',
    'Rollup',
    'Vite',
    'webpack',
    'ncc',
    'Single executable',
    'Next.js', // does not bundle the library: examples.test.js
  ]);
});
