'use strict';

// A process that has joined a group, or that pretends to aggregate it, and sends what it likes. Others go on,
// with exact numbers and bounded memory; whoever asks for a page gets it, or an error in time.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { describe, it, afterEach } = require('node:test');

const { TestGroup } = require('../fixtures/group.js');
const { hostileMessage } = require('../fixtures/hostile-input.js');
const { effort, seed } = require('../fixtures/seeded-fast-check.js');
const { randomFrom } = require('../../benchmarks/shared/random.js');
const { GroupDirectory } = require('../../lib/cluster/group/group-directory.js');
const { newId } = require('../../lib/cluster/group/group-names.js');
const { connect, listen } = require('../../lib/cluster/links/socket.js');
const messages = require('../../lib/cluster/wire/messages.js');

const { REQUEST, RESPONSE, WELCOME, PAGE, HELLO, PING, LAST } = messages;

const TIMEOUT = 1000;
const PATIENCE = 60_000;
const MESSAGES = 300 * effort;
const DEPTH = 100_000;
const MEGABYTE = 2 ** 20;

const FIELDS = ['type', 'requestId', 'file', 'bytes', 'source', 'reason', 'metrics', 'error', 'id', 'key'];
FIELDS.push('pageId', 'format', 'timeout', 'inMessage', 'checkpointInterval', 'directory');
FIELDS.push('badLog', 'known', 'pages', 'page', 'ascii', 'pid');

const lineOf = message => `${JSON.stringify(message)}\n`;

/** @returns {{socket: net.Socket, ended: Promise<void>}} which notes every message */
function withMessages(socket, onMessage = () => {}) {
  let text = '';
  socket.setEncoding('utf8');
  socket.on('error', () => {});
  socket.on('data', chunk => {
    const lines = (text + chunk).split('\n');
    text = lines.pop();
    for (const line of lines) onMessage(JSON.parse(line));
  });
  return { socket, ended: new Promise(resolve => socket.on('close', resolve)) };
}

describe(
  `a hostile process of a group (PROPERTY_SEED=${seed})`,
  { skip: process.platform === 'win32' },
  () => {
    /** @type {TestGroup} */
    let group;
    const random = randomFrom(seed);

    afterEach(() => group.close());

    /** A connection to the leader. */
    async function join({ onMessage, hello = {} } = {}) {
      const directory = new GroupDirectory(group.directory);
      const joined = withMessages(await connect(directory.socketOf(directory.newest().leader.id)), onMessage);
      joined.socket.ref();
      joined.socket.write(lineOf({ type: HELLO, id: newId(), ...hello }));
      return joined;
    }

    const watchPages = () => {
      let next = 0;
      // A busy machine needs it. Nothing waits so long: the hostile process answers or is cut off.
      return group.watch({ scrape: () => group.running[next++ % group.running.length].page(10 * TIMEOUT) });
    };

    it('that floods, nests or answers anything is cut off or ignored, and all others are exact', async () => {
      group = new TestGroup();
      const processes = await group.startMany(2);
      const watch = watchPages();
      await Promise.all(processes.map(member => member.do('busy')));
      await watch.settled();
      const { leader } = await group.roles();
      const before = await leader.do('memory');

      const deep = `${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`;
      const deepObject = `${'{"a":'.repeat(DEPTH)}1${'}'.repeat(DEPTH)}`;
      const answers = [
        ...[deep, deepObject, '1e400', '-0', '"x"', 'null'].flatMap(value =>
          FIELDS.map(
            field => requestId => `{"type":"${RESPONSE}","requestId":${requestId},"${field}":${value}}`,
          ),
        ),
      ];
      // It answers each request with the next of these, and sends more that nobody has asked for. Some do not
      // count as an answer, so another one follows: without it, a page would wait until its deadline.
      const hostile = await join({
        onMessage: ({ type, requestId }) => {
          if (type !== REQUEST) return;
          const answer = answers.pop();
          if (answer !== undefined) hostile.socket.write(`${answer(requestId)}\n`);
          hostile.socket.write(lineOf({ type: RESPONSE, requestId, error: 'x' }));
        },
      });
      for (let i = 0; i < MESSAGES; i++) {
        const type = [RESPONSE, PAGE, LAST, PING, HELLO][i % 5];
        const valid = { type, requestId: i, pageId: i, format: {}, timeout: 1, metrics: [], source: '' };
        hostile.socket.write(lineOf(hostileMessage(valid, random, FIELDS)));
        if (i % 50 === 0) await watch.settled();
      }
      await watch.settled();
      hostile.socket.destroy();
      for (const value of [deep, deepObject])
        for (const type of [HELLO, PAGE, LAST]) {
          const { socket, ended } = await join();
          socket.write(`${`{"type":"${type}","source":${value},"format":${value},"pageId":${value}}`}\n`);
          socket.end();
          await ended;
        }

      const floods = {
        // They are read, and ignored.
        'short messages': socket => socket.end('1\n'.repeat(5000)),
        'long messages': socket => {
          for (let i = 0; i < 300; i++) socket.write(lineOf('x'.repeat(MEGABYTE)));
          socket.end();
        },
        'a line without end': socket => {
          for (let i = 0; i < 40; i++) socket.write('x'.repeat(MEGABYTE));
        },
        'no JSON': socket => socket.write('{"type":\n'),
        'no greeting': async socket => socket.write('{"type":"x"}\n'),
      };
      for (const [what, flood] of Object.entries(floods)) {
        const { socket, ended } = await join(what === 'no greeting' ? { hello: { type: PING } } : {});
        await flood(socket);
        await ended;
      }
      await watch.settled();
      await watch.exact(3);
      await watch.stop();
      const grown = (await leader.do('memory')) - before;
      assert.ok(grown < 400 * MEGABYTE, `${grown} bytes`);
      assert.equal((await group.roles()).leader, leader);
      await group.until(page => page.get('prom_client_cluster_group_members') === 2);
    });

    /** Scrapes a process until it is linked to another one. Before, the pretender may answer anything. */
    async function leavesPretender(member) {
      const end = performance.now() + PATIENCE;
      while ((await member.do('state')).group.generation < 2) {
        assert.ok(performance.now() < end, 'the pretender is not replaced');
        await member.page(TIMEOUT).catch(() => new Promise(resolve => setTimeout(resolve, 20)));
      }
    }

    const pretenders = {
      'says nothing': () => {},
      'sends messages with fields of any type': socket => {
        socket.write(lineOf({ type: WELCOME, directory: '' }));
        for (let i = 0; i < MESSAGES; i++) {
          const type = [REQUEST, WELCOME, PAGE, HELLO, PING][i % 5];
          const directory = ['', 'relative', group.place, `${group.place}/missing`][i % 4];
          const valid = { type, requestId: i, directory, badLog: 'x', timeout: 1000, pageId: i };
          const { directory: any, ...message } = hostileMessage(valid, random, FIELDS);
          // Where a process writes is decided by the leader, so other places are left out.
          socket.write(
            lineOf(typeof any === 'string' ? { ...message, directory } : { ...message, directory: any }),
          );
        }
      },
    };
    for (const [what, onConnection] of Object.entries(pretenders)) {
      it(`that pretends to aggregate and ${what} is replaced while it lives`, async () => {
        group = new TestGroup();
        fs.mkdirSync(group.directory, { mode: 0o700 });
        const directory = new GroupDirectory(group.directory);
        const id = newId();
        directory.claim(1, id);
        const sockets = new Set();
        const server = await listen(directory.socketOf(id), socket => {
          sockets.add(withMessages(socket).socket);
          onConnection(socket);
        });
        const [first, second] = await Promise.all([group.start(), group.start()]);
        await Promise.all([first.do('inc', 1), second.do('inc', 2)]);
        for (const member of [first, second]) {
          await leavesPretender(member);
          await group.until(page => page.get('requests_total') === 3 && page.get('open') === 2, member);
          assert.equal((await member.do('state')).group.failure, '');
        }
        assert.ok(directory.newest().generation > 1);
        server.close();
        for (const socket of sockets) socket.destroy();
      });
    }
  },
);
