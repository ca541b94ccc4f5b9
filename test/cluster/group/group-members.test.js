'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, beforeEach, afterEach } = require('node:test');

const { GroupMembers } = require('../../../lib/cluster/group/group-members.js');
const { newKey } = require('../../../lib/cluster/group/group-names.js');
const { SocketLink, connect, listen } = require('../../../lib/cluster/links/socket.js');
const { HELLO, PING, PAGE } = require('../../../lib/cluster/wire/messages.js');

describe('members of a group', { skip: process.platform === 'win32' }, () => {
  let place;
  let server;
  let members;
  let alive;
  let lists;
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

  async function open(list = { next: 1, keys: new Map() }, { dead, silent } = {}) {
    // A test may open several.
    if (place !== undefined) fs.rmSync(place, { recursive: true, force: true });
    place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'group-members-'));
    alive = new Set([...list.keys.values()].filter(key => key !== dead));
    lists = [];
    events = [];
    isCurrent = true;
    members = new GroupMembers({
      list,
      silent,
      isAlive: async key => alive.has(key),
      onDead: () => {},
      isCurrent: () => {
        if (!isCurrent) members.close();
        return isCurrent;
      },
      onChange: changed => lists.push(changed),
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
    socketLink.trust();
    socketLink.send(hello);
    const next = async () => {
      while (messages.length === 0) await new Promise(resolve => (onMessage = resolve));
      return messages.shift();
    };
    return { link: socketLink, ended, next };
  }

  async function join(key = newKey(), id = undefined) {
    alive.add(key);
    const linked = await link({ type: HELLO, key, id, pid: 7 });
    return { ...linked, key, ...(await linked.next()) };
  }

  it('get ids that rise for ever', async () => {
    assert.equal((await join()).id, 1);
    const second = await join();
    assert.equal(second.id, 2);
    alive.delete(second.key);
    second.link.close();
    await once(members, 'disconnect');
    assert.equal((await join()).id, 3);
    assert.deepEqual(events.slice(0, 4), [
      ['fork', 1, undefined],
      ['online', 1, undefined],
      ['fork', 2, undefined],
      ['online', 2, undefined],
    ]);
    assert.equal(lists.at(-1).next, 4);
    assert.deepEqual([...lists.at(-1).keys.keys()], [1, 3]);
  });

  it('that lose their link and live keep their id', async () => {
    const { link: first, key, id } = await join();
    first.close();
    const again = await join(key, id);
    assert.equal(again.id, id);
    assert.equal(events.filter(([event]) => event === 'disconnect').length, 0);
    assert.equal(events.filter(([event]) => event === 'fork').length, 1);
    // Nor does a second link of the same process end its membership.
    const third = await join(key, id);
    await again.ended;
    assert.equal(third.id, id);
    assert.equal(members.count, 1);
  });

  it('of an earlier holder are retired if they are dead, and awaited if they live', async () => {
    members.close();
    server.close();
    const [dead, living] = [newKey(), newKey()];
    await open(
      {
        next: 9,
        keys: new Map([
          [2, dead],
          [5, living],
        ]),
      },
      { dead },
    );
    assert.equal((await join(living, 5)).id, 5);
    await members.settled;
    assert.equal((await join(newKey(), 5)).id, 9);
    assert.equal((await join(newKey(), 12)).id, 12);
    assert.equal((await join()).id, 13);
  });

  it('are waited for before the first page, but for a former holder that does not answer', async t => {
    const keys = [newKey(), newKey()];
    const now = performance.now();
    // Otherwise nobody is waited for after a second.
    t.mock.method(performance, 'now', () => now);
    await open(
      {
        next: 3,
        keys: new Map([
          [1, keys[0]],
          [2, keys[1]],
        ]),
      },
      { silent: keys[0] },
    );
    let isSettled = false;
    const settled = members.settled.then(() => (isSettled = true));
    await new Promise(resolve => setTimeout(resolve, 20));
    assert.equal(isSettled, false);
    await join(keys[1], 2);
    await settled;
    // It lives.
    assert.equal(members.idOf(keys[0]), 1);
  });

  it('of another group that was in the same place get ids that nobody had here', async () => {
    const { id, key, link: member } = await join();
    alive.delete(key);
    member.close();
    await once(members, 'disconnect');
    assert.equal((await join(newKey(), id)).id, id + 1);
    // It was taken for dead, and is not.
    assert.equal((await join(key, id)).id, id);
    members.close();
    server.close();
    await open({ next: 7, keys: new Map() });
    assert.equal((await join(newKey(), 3)).id, 7);
  });

  it('that send no valid greeting are refused', async () => {
    const hellos = [
      {},
      null,
      [],
      7,
      { type: PING },
      { type: HELLO },
      { type: HELLO, key: '../../etc' },
      { type: HELLO, key: 7 },
      { type: 'prom-client:getMetricsRes', metrics: [] },
    ];
    for (const hello of hellos) await (await link(hello)).ended;
    assert.equal(members.count, 0);
    assert.deepEqual(events, []);
    for (const id of [-1, 0, 1.5, '7', {}, 2 ** 40]) assert.ok((await join(newKey(), id)).id < 100);
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
    const { ended, next, id } = await join();
    const { [id]: member } = members.workers;
    member.send({ type: PAGE, pageId: 1 }, () => {});
    assert.deepEqual(await next(), { type: PAGE, pageId: 1 });
    isCurrent = false;
    member.send({ type: PAGE, pageId: 2 }, () => {});
    assert.equal(await Promise.race([next(), ended]), undefined);
  });
});
