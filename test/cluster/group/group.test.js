'use strict';

const assert = require('node:assert/strict');
const { execFileSync, spawnSync } = require('node:child_process');
const cluster = require('node:cluster');
const { createHash } = require('node:crypto');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it } = require('node:test');

const { Counter, Registry } = require('../../..');
const { Group } = require('../../../lib/cluster/group/group.js');
const { GroupDirectory } = require('../../../lib/cluster/group/group-directory.js');
const { newId } = require('../../../lib/cluster/group/group-names.js');
const { SocketLink, connect, listen } = require('../../../lib/cluster/links/socket.js');
const { HELLO, WELCOME, REQUEST, RESPONSE } = require('../../../lib/cluster/wire/messages.js');
const { UNAVAILABLE } = require('../../../lib/registry/unavailable.js');
const { joinGroup, groupOfProcess } = require('../../../lib/cluster/group-of-process.js');
const { ownProcessState } = require('../../../lib/registry/process-state.js');
const { makePlace, until } = require('../../fixtures/cluster-harness.js');

const ROOT = path.join(__dirname, '../../..');

// Each group of this file has two.
process.setMaxListeners(100);

const FORMAT = { format: 'text', gzip: false, selfMetrics: false };

const isLinked = group => group.state().group.failure === '';

/** Starts a group in this process. Its own timers keep no process alive. */
async function startGroup(t, registries = []) {
  const directory = new GroupDirectory(path.join(makePlace(t), 'd'));
  const alive = setInterval(() => {}, 10_000);
  t.after(() => clearInterval(alive));
  const group = new Group(directory.path, {}, () => registries);
  group.join();
  await until(() => isLinked(group), 'it is linked');
  return { group, directory };
}

describe('a process of a group', { skip: process.platform === 'win32' }, () => {
  it('that fails between its claim and the end of its election aggregates nonetheless', async t => {
    const { readdirSync } = fs;
    let hasFailed = false;
    const failing = t.mock.method(fs, 'readdirSync', (directory, ...rest) => {
      const names = readdirSync(directory, ...rest);
      if (!names.includes('g1')) return names;
      failing.mock.restore();
      hasFailed = true;
      throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
    });
    const { group } = await startGroup(t);
    assert.deepEqual([hasFailed, group.state().group.isLeader], [true, true]);
  });

  it('that has no others starts no aggregator and no thread until it is scraped, and is then asked at most every 250 ms', async t => {
    const registry = new Registry();
    let captures = 0;
    const collect = () => captures++;
    new Counter({ name: 'c_total', help: 'h', registers: [registry], collect }).inc(3);
    const { group } = await startGroup(t, [registry]);
    const own = group.state();
    const { id } = own.group;
    assert.deepEqual(
      [group.primary, own.aggregator, own.group.leader],
      [undefined, 'none', { pid: process.pid, id }],
    );
    const bytes = await group.collect(FORMAT, 60_000);
    assert.match(bytes.toString(), /^c_total 3$/m);
    captures = 0;
    const startedAt = performance.now();
    const scrape = async () => {
      while (performance.now() < startedAt + 500) await group.collect(FORMAT, 60_000);
    };
    await Promise.all(Array.from({ length: 5 }, scrape));
    const most = 2 + (performance.now() - startedAt) / 250;
    assert.ok(captures > 0 && captures <= most, `${captures} captures, ${most} are allowed`);
    assert.equal(group.state().aggregator, 'thread');
    await group.primary.close();
  });

  it('that leads no more at the end of a scrape is unavailable, as after any timeout', async t => {
    const { group, directory } = await startGroup(t);
    assert.equal(directory.claim(2, newId()), true);
    directory.succeed(2, false);
    await assert.rejects(group.collect(FORMAT, 0), error => UNAVAILABLE in error);
  });

  it('that cannot create its directory reports that, and scrapes fail at once, however long they may wait', async t => {
    // The group's own timers keep no process alive.
    const alive = setInterval(() => {}, 10_000);
    t.after(() => clearInterval(alive));
    const warned = once(process, 'warning');
    const place = path.join(makePlace(t), 'missing');
    const group = new Group(path.join(place, 'group'), {}, () => []);
    group.join();
    await assert.rejects(group.collect({ format: 'text' }, Infinity), error => {
      assert.match(error.message, /^The group's metrics cannot be collected: ENOENT/);
      assert.equal(error[UNAVAILABLE], "The group's metrics cannot be collected.");
      return true;
    });
    const [{ message }] = await warned;
    assert.match(message, /^This process has not joined its group: ENOENT: .*missing/);
    fs.mkdirSync(place);
    await until(() => isLinked(group), 'it has joined');
  });

  it('that cannot replace a process that was stopped, because the disk is full, is linked to it when it answers', async t => {
    const place = makePlace(t);
    const directory = new GroupDirectory(path.join(place, 'd'));
    directory.open();
    const id = newId();
    let isStopped = true;
    const server = await listen(directory.socketOf(id), socket => {
      const link = new SocketLink(socket, {
        onMessage: () => isStopped || link.send({ type: WELCOME, directory: '' }),
        onEnd: () => {},
      });
    });
    t.after(() => server.close());
    directory.claim(1, id);
    failCandidates(t, () => (isStopped = false));
    const group = new Group(directory.path, {}, () => []);
    group.join();
    await until(() => isLinked(group), 'it is linked');
    assert.deepEqual([isStopped, group.state().group.isLeader], [false, false]);
  });

  it('gets another id if another process of the same millisecond has its own', async t => {
    const now = Date.now();
    t.mock.method(Date, 'now', () => now);
    const directory = path.join(makePlace(t), 'd');
    const groups = [1, 2].map(() => new Group(directory, {}, () => []));
    for (const group of groups) group.join();
    await until(() => groups.every(isLinked), 'they are linked');
    const ids = groups.map(group => group.state().group.id);
    const shown = ids.sort((a, b) => a - b);
    assert.deepEqual(shown, [newId(), newId() + 1]);
  });

  it('asks another one again that has lost its link, and links again before it has answered', async t => {
    const { group, directory } = await startGroup(t);
    const id = newId();
    const server = await listen(directory.socketOf(id), socket => socket.destroy());
    t.after(() => server.close());
    const join = async (onRequest, onEnd = () => {}) => {
      const link = new SocketLink(await connect(directory.socketOf(directory.newest().leader.id)), {
        onMessage: message => message.type === REQUEST && onRequest(link, message),
        onEnd,
      });
      link.send({ type: HELLO, id });
    };
    const values = [{ value: 7, labels: {} }];
    const metrics = [{ name: 'm_total', help: 'h', type: 'counter', aggregator: 'sum', values }];
    const answer = (link, { requestId }) => link.send({ type: RESPONSE, requestId, metrics });
    await join(
      link => link.close(),
      () => void join(answer),
    );
    await until(() => group.state().group.members === 2, 'the other one is linked');
    const bytes = await group.collect(FORMAT, 60_000);
    assert.match(bytes.toString(), /^m_total 7$/m);
    await group.primary.close();
  });

  for (const when of ['before', 'after']) {
    it(`answers each scrape although fake timers never fire, which are there ${when} the library is loaded`, t => {
      const program = `
        const fake = () => {
          for (const name of ['setTimeout', 'setInterval', 'setImmediate']) globalThis[name] = () => ({ unref() {} });
          if (${when === 'after'}) require('node:test').mock.timers.enable();
          performance.now = () => 1000;
        };
        setInterval(() => {}, 10_000);
        if (${when === 'before'}) fake();
        const { Counter, Registry } = require(${JSON.stringify(ROOT)});
        const { Group } = require(${JSON.stringify(path.join(ROOT, 'lib/cluster/group/group.js'))});
        fake();
        const registry = new Registry();
        const counter = new Counter({ name: 'c_total', help: 'h', registers: [registry] });
        const group = new Group(${JSON.stringify(path.join(makePlace(t), 'd'))}, {}, () => [registry]);
        group.join();
        (async () => {
          for (let i = 0; i < 3; i++) {
            counter.inc();
            const bytes = await group.collect({ format: 'text' }, 60_000);
            console.log(bytes.toString().split('\\n').at(-2));
          }
          process.exit();
        })();`;
      const output = execFileSync(process.execPath, ['-e', program], { encoding: 'utf8', timeout: 60_000 });
      assert.equal(output, 'c_total 1\nc_total 2\nc_total 3\n');
    });
  }

  it('that finds no leader keeps nothing of scrapes that have timed out', t => {
    const place = makePlace(t);
    const program = `
      const { Group } = require(${JSON.stringify(path.join(ROOT, 'lib/cluster/group/group.js'))});
      const fs = require('node:fs');
      const { mkdirSync } = fs;
      fs.mkdirSync = (name, ...rest) => {
        if (!name.includes('candidate-')) return mkdirSync(name, ...rest);
        throw new Error('ENOSPC');
      };
      const group = new Group(${JSON.stringify(path.join(place, 'd'))}, {}, () => []);
      group.join();
      const failed = async () => (await group.collect({ format: 'text' }, 1).catch(error => error)).message;
      const scrape = async () => {
        for (let i = 0; i < 20; i++) await Promise.all(Array.from({ length: 1000 }, failed));
      };
      const bytes = () => {
        for (let i = 0; i < 3; i++) gc();
        return process.memoryUsage().heapUsed;
      };
      (async () => {
        await scrape();
        const before = bytes();
        await scrape();
        console.log(JSON.stringify({ grown: bytes() - before, message: await failed() }));
      })();
    `;
    const output = execFileSync(process.execPath, ['--expose-gc', '-e', program], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const { grown, message } = JSON.parse(output);
    assert.match(message, /metrics cannot be collected: (?:Error: )?ENOSPC/);
    // A promise and its reaction have more than 400 bytes: 8 MB.
    assert.ok(grown < 2e6, `it has grown by ${grown} bytes`);
  });
});

describe('the group of a process', { skip: process.platform === 'win32' }, () => {
  const PM2_HOME = '/home/shop/.pm2';
  const INSTANCE = { exec_mode: 'cluster_mode', PM2_HOME, namespace: 'default', name: 'a b/../ü' };
  const OF_PM2 = pm2Group(PM2_HOME, 'default', 'a b/../ü');
  const inPm2 = { env: INSTANCE, isWorker: true, isConnected: true };
  const named = name => ({ PROM_CLIENT_CLUSTER_GROUP: name });
  const without = { option: undefined, env: {}, isWorker: false, isConnected: false };

  for (const [what, given, expected] of [
    ['is none by default', {}, undefined],
    ['is that of the option', { option: 'shop' }, 'shop'],
    ['is that of the environment', { env: named('shop') }, 'shop'],
    ['is that of the environment without spaces around it', { env: named(' shop ') }, 'shop'],
    ['is that of the option if the environment names another one', { option: 'a', env: named('b') }, 'a'],
    ['is none if the environment names one of spaces', { env: named('  ') }, undefined],
    ['is none if the environment says FALSE', { env: named('FALSE') }, undefined],
    ['is none if the environment says 0', { env: named('0') }, undefined],
    ['is none if the option is false, whatever the environment names', { option: false, env: named('a') }],
    ['is the application in PM2', inPm2, OF_PM2],
    ['is none in PM2 if the option is false', { ...inPm2, option: false }, undefined],
    [
      'is none in PM2 if the environment says so',
      { ...inPm2, env: { ...INSTANCE, ...named('0') } },
      undefined,
    ],
    [
      'is the application in PM2 if the environment names an empty one',
      { ...inPm2, env: { ...INSTANCE, ...named('') } },
      OF_PM2,
    ],
    ['is that of the environment also in PM2', { ...inPm2, env: { ...INSTANCE, ...named('shop') } }, 'shop'],
    ['is that of the option also in PM2', { ...inPm2, option: 'shop' }, 'shop'],
    [
      "is none in PM2's fork mode",
      { ...inPm2, env: { ...INSTANCE, exec_mode: 'fork_mode' }, isWorker: false },
      undefined,
    ],
    [
      'is none in a fork of an instance, which has the environment of that',
      { ...inPm2, isWorker: false },
      undefined,
    ],
    ['is none in a worker that PM2 has disconnected', { ...inPm2, isConnected: false }, undefined],
    ['is none in a cluster worker without PM2', { ...inPm2, env: {} }, undefined],
    // It has one id for all instances that are started together. After `pm2 resurrect`, each has its own.
    [
      'is the application in PM2, whatever id PM2 gives the instance',
      { ...inPm2, env: { ...INSTANCE, unique_id: '0123abcd-4567' } },
      OF_PM2,
    ],
    [
      'is another one for another application of PM2',
      { ...inPm2, env: { ...INSTANCE, name: 'b' } },
      pm2Group(PM2_HOME, 'default', 'b'),
    ],
    [
      'is another one for an application of the same name in another namespace of PM2',
      { ...inPm2, env: { ...INSTANCE, namespace: 'other' } },
      pm2Group(PM2_HOME, 'other', 'a b/../ü'),
    ],
    [
      'is another one for an application of the same name of another PM2',
      { ...inPm2, env: { ...INSTANCE, PM2_HOME: '/home/other/.pm2' } },
      pm2Group('/home/other/.pm2', 'default', 'a b/../ü'),
    ],
    [
      'is the application of a PM2 without namespaces',
      { ...inPm2, env: { ...INSTANCE, namespace: undefined } },
      pm2Group(PM2_HOME, undefined, 'a b/../ü'),
    ],
    ['is none if the application has no name', { ...inPm2, env: { ...INSTANCE, name: undefined } }],
    ['is none without the directory of PM2', { ...inPm2, env: { ...INSTANCE, PM2_HOME: undefined } }],
  ]) {
    it(`${what}`, t => {
      const { option, env, isWorker, isConnected } = { ...without, ...given };
      const join = t.mock.method(Group.prototype, 'join', () => {});
      replace(t, process, { env, connected: isConnected });
      replace(t, cluster, { isWorker });
      t.after(() => (ownProcessState().group = undefined));
      const group = joinGroup({ group: option }, () => []);
      const { uid } = os.userInfo();
      const name = group && path.basename(group.state().group.directory);
      assert.equal(name, expected && `prom-client-group-${uid}-${expected}`);
      assert.equal(join.mock.callCount(), expected === undefined ? 0 : 1);
      assert.equal(groupOfProcess(), group);
      // The first AggregatorRegistry decides.
      if (option === false)
        assert.equal(
          joinGroup({ group: 'other' }, () => []),
          undefined,
        );
      const shown = joinGroup({}, () => []);
      assert.equal(shown, group);
    });
  }

  it('is none, with a warning, if the name in the environment is not valid', t => {
    const warning = t.mock.method(process, 'emitWarning', () => {});
    replace(t, process, { env: named('../a') });
    const shown = joinGroup({}, () => []);
    assert.equal(shown, undefined);
    assert.match(
      String(warning.mock.calls[0].arguments[0]),
      /^PROM_CLIENT_CLUSTER_GROUP is ignored: group must be a name of at most 32 letters/,
    );
  });

  it('has a place of its own if the directory for temporary files has too long a name: nobody is blamed', t => {
    const place = makePlace(t);
    const warning = t.mock.method(process, 'emitWarning', () => {});
    t.mock.method(Group.prototype, 'join', () => {});
    const long = path.join(place, 'x'.repeat(200));
    fs.mkdirSync(long);
    const { TMPDIR } = process.env;
    t.after(() => (TMPDIR === undefined ? delete process.env.TMPDIR : (process.env.TMPDIR = TMPDIR)));
    process.env.TMPDIR = long;
    for (const given of [{ option: 'shop' }, { env: named('x'.repeat(32)) }, inPm2]) {
      const { option, env, isWorker, isConnected } = { ...without, ...given };
      replace(t, process, { env, connected: isConnected });
      replace(t, cluster, { isWorker });
      const { directory } = joinGroup({ group: option }, () => []).state().group;
      ownProcessState().group = undefined;
      assert.match(directory, /^\/(?:dev\/shm|(?:private\/)?tmp)\/prom-client-group-\d+-\.[0-9a-f]{10}$/);
    }
    assert.equal(warning.mock.callCount(), 0);
  });

  it('is that of a path, which the program or the environment has given, only if a socket has room there', () => {
    const long = `/${'x'.repeat(100)}`;
    assert.throws(() => joinGroup({ group: long }, () => []), {
      name: 'TypeError',
      message: `group: the path of the directory is too long for a socket: '${long}'`,
    });
    const { stderr } = spawnSync(process.execPath, ['-e', 'new (require(".").AggregatorRegistry)()'], {
      cwd: ROOT,
      env: { ...process.env, ...named(long) },
      encoding: 'utf8',
    });
    assert.match(stderr, /Warning: PROM_CLIENT_CLUSTER_GROUP is ignored: group: the path .* is too long/);
  });

  it('throws if the name in the option is not valid', () => {
    for (const group of ['../a', '.', 'a b', 'x'.repeat(33)])
      assert.throws(() => joinGroup({ group }, () => []), {
        name: 'TypeError',
        message: /^group must be a name/,
      });
    assert.equal(groupOfProcess(), undefined);
  });
});

/** @returns {string} the name of an application's group */
function pm2Group(...names) {
  const text = JSON.stringify([os.hostname(), ...names]);
  return `pm2-${createHash('sha256').update(text).digest('hex').slice(0, 8)}`;
}

/** No process wins an election: the disk is full. */
function failCandidates(t, onFailure = () => {}) {
  const { mkdirSync } = fs;
  t.mock.method(fs, 'mkdirSync', (name, ...rest) => {
    if (!path.basename(name).startsWith('candidate-')) return mkdirSync(name, ...rest);
    onFailure();
    throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
  });
}

/** Replaces properties for the time of a test. */
function replace(t, object, properties) {
  for (const [name, value] of Object.entries(properties)) {
    const before = Object.getOwnPropertyDescriptor(object, name);
    Object.defineProperty(object, name, { value, configurable: true, writable: true, enumerable: true });
    t.after(() => (before === undefined ? delete object[name] : Object.defineProperty(object, name, before)));
  }
}
