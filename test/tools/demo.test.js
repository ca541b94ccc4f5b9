'use strict';

// The demo as a person runs it, with real processes and a temporary directory of its own, in which nothing
// may be left.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { afterEach, beforeEach, describe, it } = require('node:test');
const { Program } = require('../fixtures/program');

const DEMO = path.join(__dirname, '../../example/demo/demo.js');
const QUICK = ['--seconds', '2', '--rate', '100', '--samples', '2000'];

describe('npm run demo', { skip: process.platform === 'win32' && 'no signals on Windows' }, () => {
  let temporaryDirectory;
  let demo;

  beforeEach(() => {
    temporaryDirectory = fs.mkdtempSync(path.join(os.tmpdir(), 'demo-test-'));
  });

  afterEach(async () => {
    await demo.stop();
    fs.rmSync(temporaryDirectory, { recursive: true, force: true });
  });

  function startDemo(...args) {
    demo = new Program([DEMO, ...QUICK, ...args], { env: { TMPDIR: temporaryDirectory } });
  }

  function assertNothingLeft() {
    assert.deepStrictEqual(fs.readdirSync(temporaryDirectory), []);
    assert.match(demo.output, /^nothing left running, nothing left on disk$/m);
  }

  for (const client of ['prom-client-cluster', 'prom-client']) {
    it(`one client: a table compares the cluster unscraped and scraped, and the totals are right (${client})`, async () => {
      startDemo('--client', client);
      assert.strictEqual(await demo.ended(), 0, demo.output);
      assert.match(demo.output, new RegExp(`^${client}: 4 workers, about 2000 samples each, Node v`));
      assert.match(demo.output, /^scraped +200\/200 requests {2}P50 .* ms {2}scrape +\d.* ms$/m);
      assert.match(demo.output, /^ +unscraped +scraped$/m);
      assert.match(
        demo.output,
        new RegExp(`^P99 with ${client} .* scraped every second: [\\d.]+ times as long$`, 'm'),
      );
      assert.match(demo.output, /^requests answered +200 +200$/m);
      assert.match(demo.output, /^errors +0 +0$/m);
      const [, ...native] = /^ {2}in the workers, native +(\S+)(?: ms)? +(\S+)(?: ms)?$/m.exec(demo.output);
      const isNative = client === 'prom-client-cluster';
      for (const p99 of native) assert.match(p99, isNative ? /^[1-9\d.]+$/ : /^-$/);
      assert.match(demo.output, /^P99\.9 +[\d.]+ ms +[\d.]+ ms$/m);
      assert.match(demo.output, /^primary: CPU a scrape +- +[\d.]+ ms$/m);
      assert.match(demo.output, /^ {2}of its main thread +- +[\d.]+ ms$/m);
      assert.match(demo.output, /^primary: longest section +[\d.]+ ms +[\d.]+ ms$/m);
      assert.match(demo.output, /^scrapes +0 +[1-9]\d*$/m);
      assert.match(demo.output, /^median scrape +- +[\d.]+ ms$/m);
      assert.match(demo.output, /^check: demo_requests_total, summed over all workers: +600$/m);
      assert.match(demo.output, /^ +requests that arrived, by the workers' own count: 600 {3}equal$/m);
      assert.match(demo.output, /\(600 sent, 600 answered, warm-up included\)/);
      assert.match(demo.output, /^demo_requests_total\{service="\w+",method="\w+"\} \d+$/m);
      assertNothingLeft();
    });
  }

  it('Ctrl-C during a measurement ends every process', async () => {
    startDemo();
    await demo.line(/^unscraped +\d+\/200/);
    demo.signal('SIGINT');
    assert.strictEqual(await demo.ended(), 130, demo.output);
    assert.match(demo.output, /^interrupted$/m);
    assertNothingLeft();
  });

  it('--keep: the cluster serves until Ctrl-C', async () => {
    startDemo('--keep', '--client', 'prom-client-cluster', '--seconds', '1');
    const [, url] = await demo.line(/^serving (http:\S+\/metrics)$/);
    const response = await fetch(url);
    assert.match(await response.text(), /^demo_requests_total\{/m);
    demo.signal('SIGINT');
    assert.strictEqual(await demo.ended(), 0, demo.output);
    assertNothingLeft();
  });
});
