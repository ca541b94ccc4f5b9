'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, beforeEach, afterEach } = require('node:test');

const { GroupMembers } = require('../../../lib/cluster/group/group-members.js');
const { SocketLink, connect, listen } = require('../../../lib/cluster/links/socket.js');
const { HELLO, PING, PAGE } = require('../../../lib/cluster/wire/messages.js');

describe('members of a group', { skip: process.platform === 'win32' }, () => {
  let place;
  let server;
  let members;
  let events;
  let isCurrent;
  let timer;

  beforeEach(() => {
    // Links keep no process alive.
    timer = setInterval(() => {}, 1000);
    place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'group-members-'));
  });
  afterEach(() => {
    clearInterval(timer);
    members.close();
    server.close();
    fs.rmSync(place, { recursive: true, force: true });
  });

  async function open({ ids = [], dead, unresponsive } = {}) {
    events = [];
    isCurrent = true;
    members = new GroupMembers({
      ids,
      unresponsive,
      directory: {
        isAlive: async id => id !== dead,
        removeSocket: id => events.push(['dead', id]),
      },
      isCurrent: () => {
        if (!isCurrent) members.close();
        return isCurrent;
      },
    });
    for (const event of ['fork', 'disconnect']) members.on(event, ({ id }) => events.push([event, id]));
    server = await listen(path.join(place, 's'), socket => members.accept(socket));
  }

  /** @returns {Promise<{link: SocketLink, ended: Promise<void>, next: () => Promise<any>}>} */
  async function link(hello) {
    const messages = [];
    let onMessage = () => {};
    let onEnd = () => {};
    const ended = new Promise(resolve => (onEnd = resolve));
    const socketLink = new SocketLink(await connect(path.join(place, 's')), {
      onMessage(message) {
        messages.push(message);
        onMessage();
      },
      onEnd,
    });
    socketLink.send(hello);
    const next = async () => {
      while (messages.length === 0) await new Promise(resolve => (onMessage = resolve));
      return messages.shift();
    };
    return { link: socketLink, ended, next };
  }

  async function join(id) {
    const online = once(members, 'online');
    const linked = await link({ type: HELLO, id });
    await online;
    return linked;
  }

  it('that lose their link and live stay members', async () => {
    await open();
    const { link: first } = await join(7);
    first.close();
    const again = await join(7);
    // Nor does a second link of the same process end its membership.
    await join(7);
    await again.ended;
    assert.deepEqual(events, [['fork', 7]]);
  });

  it('of an earlier leader are retired if they are dead, and awaited if they live and answer', async t => {
    const now = performance.now();
    // Otherwise nobody is waited for after a second.
    t.mock.method(performance, 'now', () => now);
    await open({ ids: [1, 2, 3], unresponsive: 1, dead: 3 });
    let isSettled = false;
    const settled = members.settled.then(() => (isSettled = true));
    assert.deepEqual(events, [
      ['dead', 3],
      ['disconnect', 3],
    ]);
    await new Promise(resolve => setTimeout(resolve, 20));
    assert.equal(isSettled, false);
    await join(2);
    await settled;
    assert.deepEqual(Object.keys(members.workers), ['1', '2']);
  });

  it('that send no valid greeting are refused', async () => {
    await open();
    const hellos = [
      ...[{}, null, [], 7, { type: PING }, { type: HELLO }],
      ...[-1, 0, 1.5, '7', {}, '../../etc', 2 ** 32].map(id => ({ type: HELLO, id })),
      { type: 'prom-client:getMetricsRes', metrics: [] },
    ];
    for (const hello of hellos) await (await link(hello)).ended;
    assert.equal(members.count, 0);
    assert.deepEqual(events, []);
  });

  it('get an answer to a ping, and no page after another process has taken over', async () => {
    await open();
    const { link: socketLink, ended, next } = await join(9);
    socketLink.send({ type: PING });
    assert.deepEqual(await next(), { type: PING });
    const { 9: member } = members.workers;
    member.send({ type: PAGE, pageId: 1 }, () => {});
    assert.deepEqual(await next(), { type: PAGE, pageId: 1 });
    isCurrent = false;
    member.send({ type: PAGE, pageId: 2 }, () => {});
    assert.equal(await Promise.race([next(), ended]), undefined);
  });
});
