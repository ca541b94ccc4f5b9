'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, beforeEach, afterEach } = require('node:test');

const { GroupMembers } = require('../../../lib/cluster/group/group-members.js');
const { newId } = require('../../../lib/cluster/group/group-names.js');
const { SocketLink, connect, listen } = require('../../../lib/cluster/links/socket.js');
const { HELLO, PING, PAGE } = require('../../../lib/cluster/wire/messages.js');

describe('members of a group', { skip: process.platform === 'win32' }, () => {
  let place;
  let server;
  let members;
  let alive;
  let events;
  let isCurrent;

  let timer;

  beforeEach(() => {
    // Links keep no process alive.
    timer = setInterval(() => {}, 1000);
    return open();
  });
  afterEach(() => {
    clearInterval(timer);
    members.close();
    server.close();
    fs.rmSync(place, { recursive: true, force: true });
  });

  async function open(ids = [], { dead, unresponsive } = {}) {
    // A test may open several.
    if (place !== undefined) fs.rmSync(place, { recursive: true, force: true });
    place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'group-members-'));
    alive = new Set(ids.filter(id => id !== dead));
    events = [];
    isCurrent = true;
    members = new GroupMembers({
      ids,
      unresponsive,
      isAlive: async id => alive.has(id),
      onDead: id => events.push(['dead', id, undefined]),
      isCurrent: () => {
        if (!isCurrent) members.close();
        return isCurrent;
      },
      onJoined: () => {},
    });
    for (const event of ['fork', 'online', 'message', 'disconnect'])
      members.on(event, (member, message) => events.push([event, member.id, message]));
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

  async function join(id = newId()) {
    alive.add(id);
    const linked = await link({ type: HELLO, id });
    assert.deepEqual(await linked.next(), { type: HELLO });
    return linked;
  }

  it('come and go', async () => {
    await join(1);
    const second = await join(2);
    alive.delete(2);
    second.link.close();
    await once(members, 'disconnect');
    await join(3);
    assert.deepEqual(events, [
      ['fork', 1, undefined],
      ['online', 1, undefined],
      ['fork', 2, undefined],
      ['online', 2, undefined],
      ['dead', 2, undefined],
      ['disconnect', 2, undefined],
      ['fork', 3, undefined],
      ['online', 3, undefined],
    ]);
    assert.deepEqual(Object.keys(members.workers), ['1', '3']);
  });

  it('that lose their link and live stay members', async () => {
    const { link: first } = await join(7);
    first.close();
    const again = await join(7);
    assert.equal(events.filter(([event]) => event === 'disconnect').length, 0);
    assert.equal(events.filter(([event]) => event === 'fork').length, 1);
    // Nor does a second link of the same process end its membership.
    await join(7);
    await again.ended;
    assert.equal(members.count, 1);
  });

  it('of an earlier leader are retired if they are dead, and awaited if they live', async () => {
    members.close();
    server.close();
    await open([2, 5], { dead: 2 });
    await join(5);
    await members.settled;
    assert.deepEqual(Object.keys(members.workers), ['5']);
    assert.deepEqual(events.slice(0, 2), [
      ['dead', 2, undefined],
      ['disconnect', 2, undefined],
    ]);
  });

  it('are waited for before the first page, but for a former leader that does not answer', async t => {
    const now = performance.now();
    // Otherwise nobody is waited for after a second.
    t.mock.method(performance, 'now', () => now);
    await open([1, 2], { unresponsive: 1 });
    let isSettled = false;
    const settled = members.settled.then(() => (isSettled = true));
    await new Promise(resolve => setTimeout(resolve, 20));
    assert.equal(isSettled, false);
    await join(2);
    await settled;
    // It lives.
    assert.equal(members.workers[1].isConnected(), false);
  });

  it('that send no valid greeting are refused', async () => {
    const hellos = [
      {},
      null,
      [],
      7,
      { type: PING },
      { type: HELLO },
      ...[-1, 0, 1.5, '7', {}, '../../etc', 2 ** 32].map(id => ({ type: HELLO, id })),
      { type: 'prom-client:getMetricsRes', metrics: [] },
    ];
    for (const hello of hellos) await (await link(hello)).ended;
    assert.equal(members.count, 0);
    assert.deepEqual(events, []);
  });

  it('get an answer to a ping, and their messages are passed on', async () => {
    const { link: member, next } = await join();
    member.send({ type: PING });
    assert.deepEqual(await next(), { type: PING });
    const passed = once(members, 'message');
    member.send({ type: 'x', n: 1 });
    assert.deepEqual((await passed)[1], { type: 'x', n: 1 });
  });

  it('get no page after another process has taken over, which may have all the numbers', async () => {
    const { ended, next } = await join(9);
    const { 9: member } = members.workers;
    member.send({ type: PAGE, pageId: 1 }, () => {});
    assert.deepEqual(await next(), { type: PAGE, pageId: 1 });
    isCurrent = false;
    member.send({ type: PAGE, pageId: 2 }, () => {});
    assert.equal(await Promise.race([next(), ended]), undefined);
  });
});
