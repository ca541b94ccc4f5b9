'use strict';

// Instances of PM2's cluster mode are a group without any setting. Each page is compared with what the
// instances have counted themselves.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { randomInt } = require('node:crypto');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');

const { GroupWatch, countIn, samplesOf, untilCheckpoint } = require('../fixtures/group.js');

const PM2 = path.join(__dirname, 'pm2/node_modules/pm2/bin/pm2');
const EXAMPLE = path.join(__dirname, '../../example/pm2/run.js');
const APPLICATION = path.join(__dirname, 'fixtures/pm2-application.js');

const INSTANCES = 4;
const SCRAPES = 200;
const SCRAPE_PAUSE = 100;
const CLIENTS = 4;
const CLIENT_PAUSE = 20;

// PM2 kills an instance that it has asked to end after 1.6 seconds, and asks it although the new one does not
// listen yet after 3 seconds. On a busy machine, all old ones would have ended before a new one has started.
const TIMEOUTS = ['--kill-timeout', '60000', '--listen-timeout', '60000'];

// A page has that long on a busy machine; five seconds by default.
const PAGE_TIMEOUT = 30_000;

// How long after a request its connection is looked at.
const HANGING = 10_000;

// No system gives a higher port to a connection, so none is in use by the time an instance listens.
const PORTS = /** @type {const} */ ([20_000, 32_768]);

// Of a connection to an instance that ends meanwhile, or whose port is not open yet.
const BROKEN = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE']);

const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

describe('under PM2', { skip: process.platform === 'win32' }, () => {
  /** @type {string} */
  let place;

  before(() => {
    place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'pm2-'));
  });

  after(async () => {
    await pm2(['kill']);
    fs.rmSync(place, { recursive: true, force: true });
  });

  /** @returns {Promise<string>} */
  async function pm2(args, more = {}) {
    const own = { PM2_HOME: place, TMPDIR: place, PROM_CLIENT_CLUSTER_TIMEOUT: String(PAGE_TIMEOUT) };
    const child = spawn(process.execPath, [PM2, ...args], { env: { ...process.env, ...own, ...more } });
    let output = '';
    child.stdout.on('data', data => (output += data));
    child.stderr.on('data', data => (output += data));
    const [code] = await once(child, 'close');
    assert.equal(code, 0, output);
    return output;
  }

  /** An application, and its clients. */
  class Application {
    /** What the killed ones had counted at a checkpoint, by pid. */
    #killed = new Map();
    /** Whether instances end without an answer to requests that they have. */
    #isDisturbed = true;
    /** How many scrapes such an instance had. They are made again. */
    broken = 0;
    #scrapes = 0;
    #isOver = false;
    #clients = [];

    /**
     * @param {string} name
     * @param {boolean} isGraceful whether it listens to SIGINT
     */
    constructor(name, isGraceful) {
      this.name = name;
      this.isGraceful = isGraceful;
      this.bookPlace = path.join(place, `books-${name}`);
      this.arrived = path.join(place, `arrived-${name}`);
      this.errors = path.join(place, `errors-${name}`);
      for (const directory of [this.bookPlace, this.arrived]) fs.mkdirSync(directory);
    }

    async start() {
      this.port = await freePort();
      const args = ['--name', this.name, '-i', String(INSTANCES), ...TIMEOUTS];
      const env = {
        PORT: String(this.port),
        BOOKS: this.bookPlace,
        ARRIVED: this.arrived,
        ERRORS: this.errors,
        GRACEFUL: this.isGraceful ? '1' : '',
      };
      await pm2(['start', APPLICATION, ...args], env);
      await this.pids(INSTANCES);
      this.#clients = Array.from({ length: CLIENTS }, () => this.#request());
      this.watch = new GroupWatch({
        books: () => this.books(),
        scrape: async () => {
          const url = `/metrics?${++this.#scrapes}`;
          const text = await this.get(url);
          if (text !== undefined) return samplesOf(text);
          if (this.hasArrived(url)) this.broken++;
          return undefined;
        },
        pause: SCRAPE_PAUSE,
      });
      this.#isDisturbed = false;
    }

    /** A command of PM2, under load. */
    async command(...args) {
      this.#isDisturbed = !this.isGraceful;
      await pm2(args);
      await this.watch.settled();
      this.#isDisturbed = false;
    }

    async #request() {
      while (!this.#isOver) {
        await this.get('/');
        await pause(CLIENT_PAUSE);
      }
    }

    async stop() {
      this.#isOver = true;
      await Promise.all(this.#clients);
      await this.watch.settled();
      await this.watch.stop();
    }

    /** After a failed test, clients and scrapes would go on for ever. */
    async abandon() {
      this.#isOver = true;
      await Promise.allSettled([...this.#clients, this.watch?.stop()]);
    }

    /**
     * @returns {Promise<string | undefined>} undefined if the request has not arrived, or the instance that
     *   it has reached was killed
     */
    get(url) {
      const wasDisturbed = this.#isDisturbed;
      return new Promise((resolve, reject) => {
        const fail = error => {
          const isAllowed = wasDisturbed || this.#isDisturbed || !this.hasArrived(url);
          if (isAllowed && BROKEN.has(error.code)) resolve(undefined);
          else reject(error);
        };
        const request = http
          .get({ port: this.port, path: url, agent: false }, response => {
            let text = '';
            response.on('data', data => (text += data));
            response.on('end', () => {
              if (response.statusCode === 200) resolve(text);
              else reject(new Error(`${response.statusCode}: ${text}${this.errorsSeen}`));
            });
            response.on('error', fail);
          })
          .on('error', fail)
          .on('close', () => clearTimeout(timer));
        // Node.js never closes a connection that it was handing over to a worker when that ended.
        let timer = setTimeout(() => {
          if (!this.hasArrived(url)) {
            resolve(undefined);
            request.destroy();
          } else
            timer = setTimeout(() => request.destroy(new Error(`no answer to ${url}`)), 2 * PAGE_TIMEOUT);
        }, HANGING);
      });
    }

    /** What instances have said of pages that failed. */
    get errorsSeen() {
      return fs.existsSync(this.errors) ? fs.readFileSync(this.errors, 'utf8') : '';
    }

    /** @param {string} url */
    hasArrived(url) {
      return url.startsWith('/metrics') && fs.existsSync(path.join(this.arrived, path.basename(url)));
    }

    /**
     * PM2 ends an instance by SIGINT. Unless it listens to that, it may lose what it has counted since it was
     * asked last.
     */
    books() {
      return fs.readdirSync(this.bookPlace).map(name => ({
        name,
        counted: countIn(path.join(this.bookPlace, name)),
        floor: this.#killed.get(Number(name)) ?? 0,
        isComplete: !this.#killed.has(Number(name)) && (this.isGraceful || isRunning(Number(name))),
      }));
    }

    /**
     * @returns {Promise<{all: Map<number, {id: number, directory: string}>, leader: number}>} states by
     *   pid, and the pid of the leader, when there are so many instances
     */
    async pids(count) {
      const seen = new Map();
      for (;;) {
        const text = await this.get('/state');
        if (text !== undefined) {
          const { pid, ...group } = JSON.parse(text);
          seen.set(pid, group);
        }
        const newest = Math.max(...Array.from(seen.values(), ({ generation }) => generation));
        const current = [...seen].filter(([, { generation }]) => generation === newest && newest > 0);
        const leader = current.find(([, { isLeader }]) => isLeader)?.[0];
        if (current.length >= count && leader !== undefined) return { all: new Map(current), leader };
        await pause(CLIENT_PAUSE);
      }
    }

    /** Ends PM2 and restores what it has saved, as a restart of the system does. */
    async restart() {
      this.#isDisturbed = true;
      for (const command of ['save', 'kill', 'resurrect']) await pm2([command]);
    }

    /** @returns {Promise<{pid: number, pm_id: number, pm2_env: {status: string}}[]>} instances */
    async list() {
      const lines = (await pm2(['jlist'])).split('\n');
      return JSON.parse(lines.find(line => line.startsWith('[{'))).filter(({ name }) => name === this.name);
    }

    /** Kills an instance when it has written a checkpoint of what it has counted so far. */
    async kill(pid, { id, directory }) {
      const counted = countIn(path.join(this.bookPlace, String(pid)));
      await untilCheckpoint(directory, id);
      this.#isDisturbed = true;
      this.#killed.set(pid, counted);
      process.kill(pid, 'SIGKILL');
      await this.watch.settled();
    }

    /** Waits until PM2 has replaced what was killed. */
    async replaced(count) {
      const online = async () =>
        (await this.list()).filter(({ pm2_env: { status } }) => status === 'online').length;
      while ((await online()) < count) await pause(SCRAPE_PAUSE);
      await this.watch.settled();
      this.#isDisturbed = false;
    }
  }

  for (const [name, isGraceful] of [
    ['an application that listens to SIGINT', true],
    ['an application that does not listen to SIGINT', false],
  ]) {
    describe(name, () => {
      /** @type {Application} */
      let application;

      before(() => {
        application = new Application(isGraceful ? 'graceful' : 'plain', isGraceful);
        return application.start();
      });
      after(() => application.abandon());

      if (isGraceful)
        it('each of 200 scrapes under load, on any instance, shows what was answered before', async () => {
          await application.watch.exact(SCRAPES);
          for (const { name: pid, counted } of application.books())
            assert.ok(counted > 0, `${pid} has answered`);
        });

      it('reload, scale, restart and SIGKILL under load: no scrape fails, no counter falls, nothing is lost that was in a checkpoint', async t => {
        const { watch, name: id } = application;
        await application.command('reload', id);
        await application.command('scale', id, '6');
        await application.command('scale', id, '3');
        await application.command('restart', String((await application.list())[0].pm_id));
        assert.ok(!isGraceful || application.broken === 0, `${application.broken} scrapes broke`);
        const { leader, all } = await application.pids(3);
        await application.kill(leader, all.get(leader));
        const next = await application.pids(2);
        const other = [...next.all].find(([pid]) => pid !== next.leader && pid !== leader);
        await application.kill(...other);
        await application.replaced(3);
        await watch.exact(5);
        t.diagnostic(`${application.broken} scrapes reached an instance that was killed, of ${watch.pages}`);
        await application.stop();
        if (!isGraceful) {
          await application.restart();
          const restored = await application.pids(3);
          assert.equal(new Set(Array.from(restored.all.values(), ({ directory }) => directory)).size, 1);
        }
        await pm2(['delete', id]);
      });
    });
  }

  it('example/pm2 runs, and its page shows all requests, also after a reload and with fewer instances', async () => {
    const own = { PM2, PORT: String(await freePort()), PROM_CLIENT_CLUSTER_TIMEOUT: String(PAGE_TIMEOUT) };
    const env = { ...process.env, TMPDIR: place, ...own };
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

/** @returns {Promise<number>} a port that nobody listens on */
async function freePort() {
  for (;;) {
    const port = randomInt(...PORTS);
    const server = net.createServer().listen(port);
    try {
      await once(server, 'listening');
    } catch (error) {
      if (error.code !== 'EADDRINUSE') throw error;
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}

/** @param {number} pid */
function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
