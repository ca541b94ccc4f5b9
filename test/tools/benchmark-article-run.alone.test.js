'use strict';

// A short run of the article's benchmark, as a person starts it: four processes or more under load, and what
// is left of them when it has ended.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');

const PROGRAM = path.join(__dirname, '../../benchmarks/article/run.js');
const TIMEOUT = 300_000; // for a run that hangs

describe('node benchmarks/article/run.js', { skip: process.platform !== 'linux' && 'reads /proc' }, () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'article-run-'));
  const mark = `ARTICLE_BENCHMARK_TEST=${path.basename(directory)}`;
  const binary = path.join(directory, 'node');

  // A path other than that of this process, so the program has to start itself again.
  before(() => fs.copyFileSync(process.execPath, binary, fs.constants.COPYFILE_FICLONE));
  after(() => fs.rmSync(directory, { recursive: true }));

  function start(...args) {
    const [name, value] = mark.split('=');
    const tiny = [
      '--samples',
      '200',
      '--repetitions',
      '1',
      '--seconds',
      '1',
      '--workers',
      '2',
      '--node',
      binary,
    ];
    const child = spawn(process.execPath, [PROGRAM, ...tiny, ...args, '--output', directory], {
      detached: true,
      env: { ...process.env, NODE_TEST_CONTEXT: undefined, [name]: value },
    });
    const seen = { output: '' };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', chunk => (seen.output += chunk));
    }
    return { child, seen, closed: once(child, 'close') };
  }

  function processes() {
    return fs
      .readdirSync('/proc')
      .filter(name => /^\d+$/.test(name) && readOrNothing(`/proc/${name}/environ`).split('\0').includes(mark))
      .map(name => readOrNothing(`/proc/${name}/cmdline`).replaceAll('\0', ' '))
      .filter(Boolean);
  }

  it('a run measures a round and writes its table, JSON and page', { timeout: TIMEOUT }, async () => {
    const { child, seen, closed } = start('--rounds', 'frequent-new', '--clients', 'prom-client,ours');
    await closed;
    assert.equal(child.exitCode, 0, seen.output);
    assert.match(
      seen.output,
      /\[6\/6\] frequent-new, repetition 1 of 1: ours, unscraped — about \d+ (s|min) left/,
    );
    assert.match(seen.output, /\| 4: ours, scraped +\|/);
    const files = fs.readdirSync(directory);
    const [json, html] = ['.json', '.html'].map(end => files.find(name => name.endsWith(end)));
    const { machine, rounds } = JSON.parse(fs.readFileSync(path.join(directory, json), 'utf8'));
    assert.ok(machine.startsWith(`Node ${process.version}, `));
    const [{ rate, segments, wrongTotals }] = rounds;
    assert.deepEqual(wrongTotals, {});
    assert.deepEqual(
      segments.map(({ run, requests, failed, failures }) => [run, requests, failed, failures]),
      ['stock', 'stock-scraped', 'ours', 'ours-scraped', 'ours-again'].map(run => [run, rate, 0, []]),
    );
    for (const { run, scrapes } of segments) assert.equal(scrapes.length, run.endsWith('-scraped') ? 1 : 0);
    assert.match(fs.readFileSync(path.join(directory, html), 'utf8'), /<\/html>\n$/);
    assert.deepEqual(processes(), []);
  });

  it('Ctrl-C ends every process of a run', { timeout: TIMEOUT }, async () => {
    const { child, seen, closed } = start('--rounds', 'frequent-reused', '--clients', 'bare,ours');
    while (!seen.output.includes('repetition 1 of 1'))
      await Promise.race([once(child.stderr, 'data'), closed]);
    assert.ok(processes().length >= 8, processes().join('\n'));
    process.kill(-child.pid, 'SIGINT');
    await closed;
    assert.equal(child.exitCode, 130, seen.output);
    assert.deepEqual(processes(), []);
  });
});

function readOrNothing(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return ''; // the process has ended
  }
}
