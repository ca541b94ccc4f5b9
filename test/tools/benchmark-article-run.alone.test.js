'use strict';

// A short run of the article's benchmark, as a person starts it: four processes or more under load, and what
// is left of them when it has ended.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');

const { MarkedProgram } = require('./fixtures/marked-program.js');

const PROGRAM = path.join(__dirname, '../../benchmarks/article/run.js');
const TIMEOUT = 300_000; // for a run that hangs

describe('node benchmarks/article/run.js', { skip: process.platform !== 'linux' && 'reads /proc' }, () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'article-run-'));
  const temporary = path.join(directory, 'temporary');
  const binary = path.join(directory, 'node');

  // A path other than that of this process, so the program has to start itself again.
  before(() => {
    fs.mkdirSync(temporary);
    fs.copyFileSync(process.execPath, binary, fs.constants.COPYFILE_FICLONE);
  });
  after(() => fs.rmSync(directory, { recursive: true }));

  function start(...args) {
    const tiny = '--samples 200 --repetitions 1 --seconds 1 --workers 2'.split(' ');
    const places = ['--node', binary, '--output', directory];
    return new MarkedProgram([PROGRAM, ...tiny, ...args, ...places], temporary);
  }

  it('a run measures a round and writes its table, JSON and page', { timeout: TIMEOUT }, async () => {
    const run = start('--rounds', 'frequent-new', '--clients', 'bare,prom-client,ours');
    assert.equal(await run.exitCode(), 0, run.output);
    assert.match(
      run.output,
      /\[8\/8\] frequent-new, repetition 1 of 1: ours, unscraped — about \d+ (s|min) left/,
    );
    assert.match(run.output, /\| 4: ours, scraped +\|/);
    const files = fs.readdirSync(directory);
    const [json, html] = ['.json', '.html'].map(end => files.find(name => name.endsWith(end)));
    const { machine, rounds } = JSON.parse(fs.readFileSync(path.join(directory, json), 'utf8'));
    assert.ok(machine.startsWith(`Node ${process.version}, `));
    const [{ rate, segments, wrongTotals }] = rounds;
    assert.deepEqual(wrongTotals, {});
    assert.deepEqual(
      segments.map(({ run: name, requests, failed, failures }) => [name, requests, failed, failures]),
      ['bare', 'bare-scraped', 'stock', 'stock-scraped', 'ours', 'ours-scraped', 'ours-again'].map(name => [
        name,
        rate,
        0,
        [],
      ]),
    );
    for (const { run: name, scrapes } of segments)
      assert.equal(scrapes.length, name.endsWith('-scraped') ? 1 : 0);
    assert.match(fs.readFileSync(path.join(directory, html), 'utf8'), /<\/html>\n$/);
    assert.deepEqual(run.processes(), []);
  });

  it('Ctrl-C ends every process of a run', { timeout: TIMEOUT }, async () => {
    const run = start('--rounds', 'frequent-reused', '--clients', 'bare,ours');
    await run.printed(/repetition 1 of 1/);
    assert.ok(run.processes().length >= 8, run.processes().join('\n'));
    run.signalAll('SIGINT');
    assert.equal(await run.exitCode(), 130, run.output);
    assert.deepEqual(run.processes(), []);
  });
});
