'use strict';

// Instances of PM2's cluster mode are a group without any setting: each shows exactly what all have answered.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');

const PM2 = path.join(__dirname, 'pm2/node_modules/pm2/bin/pm2');
const EXAMPLE = path.join(__dirname, '../../example/pm2/run.js');
const APPLICATION = path.join(__dirname, 'fixtures/pm2-application.js');

const INSTANCES = 4;
const SCRAPES = 200;
const PAUSE = 100;

// Of a connection to an instance that is killed meanwhile, or whose port is not open yet.
const BROKEN = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE']);

describe('under PM2', { skip: process.platform === 'win32' }, () => {
  /** @type {string} */
  let place;
  let port;
  let answered = 0;

  before(async () => {
    place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'pm2-'));
    const server = net.createServer().listen(0);
    await once(server, 'listening');
    ({ port } = /** @type {net.AddressInfo} */ (server.address()));
    server.close();
    await pm2('start', APPLICATION, '--name', 'app', '-i', String(INSTANCES));
    await pidsOf(INSTANCES);
  });

  after(async () => {
    await pm2('kill');
    fs.rmSync(place, { recursive: true, force: true });
  });

  /** @returns {Promise<string>} */
  async function pm2(...args) {
    const env = { ...process.env, PM2_HOME: place, TMPDIR: place, PORT: String(port) };
    const child = spawn(process.execPath, [PM2, ...args], { env });
    let output = '';
    child.stdout.on('data', data => (output += data));
    child.stderr.on('data', data => (output += data));
    const [code] = await once(child, 'close');
    assert.equal(code, 0, output);
    return output;
  }

  /** @returns {Promise<{status: number, text: string} | undefined>} undefined if the instance was killed */
  function get(url) {
    return new Promise((resolve, reject) => {
      const fail = error => (BROKEN.has(error.code) ? resolve(undefined) : reject(error));
      http
        .get({ port, path: url, agent: false }, response => {
          let text = '';
          response.on('data', data => (text += data));
          response.on('end', () => resolve({ status: response.statusCode, text }));
          response.on('error', fail);
        })
        .on('error', fail);
    });
  }

  async function scrape() {
    const response = await get('/metrics');
    if (response === undefined) return undefined;
    assert.equal(response.status, 200, response.text);
    return Number(/^answered_total (\d+)$/m.exec(response.text)?.[1]);
  }

  async function answer(times) {
    for (let i = 0; i < times; i++) {
      assert.equal((await get('/'))?.status, 200);
      answered++;
    }
  }

  /** @returns {Promise<{all: Set<number>, aggregator: number}>} pids, when there are so many instances */
  async function pidsOf(count) {
    const seen = new Map();
    for (;;) {
      const response = await get('/state');
      if (response !== undefined) {
        const { pid, isAggregator, generation } = JSON.parse(response.text);
        seen.set(pid, { isAggregator, generation });
      }
      const newest = Math.max(...Array.from(seen.values(), ({ generation }) => generation));
      const current = [...seen].filter(([, { generation }]) => generation === newest && newest > 0);
      const aggregator = current.find(([, { isAggregator }]) => isAggregator)?.[0];
      if (current.length >= count && aggregator !== undefined)
        return { all: new Set(current.map(([pid]) => pid)), aggregator };
      await new Promise(resolve => setTimeout(resolve, 20));
    }
  }

  it('each of 200 scrapes, on any instance, shows what was answered before', async () => {
    for (let i = 0; i < SCRAPES; i++) {
      await answer(1);
      assert.equal(await scrape(), answered);
    }
  });

  it('reload, scale, restart and SIGKILL while scraped: no scrape fails, no counter falls', async () => {
    let isOver = false;
    let last = answered;
    const scrapes = (async () => {
      while (!isOver) {
        const total = await scrape();
        assert.ok(total === undefined || total >= last, `${total} after ${last}`);
        last = total ?? last;
        await new Promise(resolve => setTimeout(resolve, PAUSE));
      }
    })();
    scrapes.catch(() => {});
    /** All that was answered is shown, once the counts have been in a checkpoint. */
    const settled = async () => {
      do await Promise.race([scrapes, new Promise(resolve => setTimeout(resolve, PAUSE))]);
      while (last < answered);
      assert.equal(last, answered);
    };
    const list = async () => JSON.parse((await pm2('jlist')).split('\n').find(line => line.startsWith('[{')));

    await pm2('reload', 'app');
    await answer(10);
    await settled();
    await pm2('scale', 'app', '6');
    await answer(10);
    await settled();
    await pm2('scale', 'app', '3');
    await answer(10);
    await settled();
    await pm2('restart', String((await list())[0].pm_id));
    await answer(10);
    await settled();
    // The one that aggregates, and another one.
    const { aggregator } = await pidsOf(3);
    process.kill(aggregator, 'SIGKILL');
    await settled();
    const next = await pidsOf(2);
    process.kill([...next.all].find(pid => pid !== next.aggregator && pid !== aggregator) ?? 0, 'SIGKILL');
    await settled();
    while ((await list()).filter(({ pm2_env: { status } }) => status === 'online').length < 3);
    await settled();
    isOver = true;
    await scrapes;
  });

  it('example/pm2 runs, and its page shows all requests, also after a reload and with fewer instances', async () => {
    const server = net.createServer().listen(0);
    await once(server, 'listening');
    const { port: free } = /** @type {net.AddressInfo} */ (server.address());
    server.close();
    const env = { ...process.env, TMPDIR: place, PM2, PORT: String(free) };
    const child = spawn(process.execPath, [EXAMPLE], { env });
    let output = '';
    child.stdout.on('data', data => (output += data));
    child.stderr.on('data', data => (output += data));
    const [code] = await once(child, 'close');
    assert.equal(code, 0, output);
    const lines = output.trim().split('\n');
    assert.match(lines[0], /^200 requests to [234] instances: http_requests_total 200$/);
    assert.match(lines[1], /^after pm2 reload: +http_requests_total 200$/);
    assert.match(lines[2], /^after pm2 scale example 2: +http_requests_total 200$/);
    assert.equal(lines.length, 3, output);
  });
});
