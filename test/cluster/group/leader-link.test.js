'use strict';

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const { describe, it, beforeEach } = require('node:test');

const { LeaderLink } = require('../../../lib/cluster/group/leader-link.js');
const { WELCOME, PAGE, PING } = require('../../../lib/cluster/wire/messages.js');

const GREETING = { type: WELCOME, directory: '' };
const FORMAT = { format: 'text', gzip: false, selfMetrics: false };

class FakeSocket extends EventEmitter {
  writable = true;
  writableLength = 0;
  unref() {}
  sent = [];
  setEncoding() {}
  write(line, callback) {
    this.sent.push(JSON.parse(line));
    callback();
  }
  destroy() {
    this.writable = false;
    this.emit('close');
  }
  receive(message) {
    this.emit('data', `${JSON.stringify(message)}\n`);
  }
}

describe('the link to the leader', () => {
  let socket;
  let events;
  let link;

  beforeEach(() => {
    socket = new FakeSocket();
    events = [];
  });

  function open(t) {
    t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    link = new LeaderLink(socket, 1, 7, {
      onWelcome: () => events.push('hello'),
      onRequest: () => {},
      onUnresponsive: () => events.push('silence'),
      onEnd: () => events.push('end'),
    });
    link.welcome.catch(() => {});
  }

  /** @param {number} milliseconds in which each timer starts the next one */
  function wait(t, milliseconds) {
    for (let i = 0; i < milliseconds; i += 100) t.mock.timers.tick(100);
  }

  /** @returns {number[]} ids of the pages that were requested over this link */
  const pageIds = () => socket.sent.filter(({ type }) => type === PAGE).map(({ pageId }) => pageId);

  it('ends if it does not answer at all for 2 seconds', t => {
    open(t);
    wait(t, 1900);
    assert.deepEqual(events, []);
    wait(t, 100);
    assert.deepEqual(events, ['silence', 'end']);
  });

  it('is unresponsive, too, if it sends anything but a greeting', t => {
    open(t);
    for (let i = 0; i < 19; i++) {
      for (const message of [{ type: PING }, null, 7, { type: PAGE }]) socket.receive(message);
      wait(t, 100);
    }
    assert.deepEqual(events, []);
    wait(t, 100);
    assert.deepEqual(events, ['silence', 'end']);
  });

  it('sends no ping unless a page takes half a second, and then one at a time', async t => {
    open(t);
    socket.receive(GREETING);
    const pings = () => socket.sent.filter(({ type }) => type === PING).length;
    const page = () => {
      const pending = link.page(FORMAT, 60_000);
      pending.catch(() => {});
    };
    await new Promise(resolve => setImmediate(resolve));
    page();
    wait(t, 400);
    assert.equal(pings(), 0);
    page();
    wait(t, 1000);
    assert.equal(pings(), 1);
    socket.receive({ type: PING });
    wait(t, 500);
    assert.equal(pings(), 2);
    socket.destroy();
  });

  it('ends within 2.5 seconds if it is stopped at any time before it has sent the page', async t => {
    open(t);
    socket.receive(GREETING);
    const page = link.page(FORMAT, 60_000);
    for (let i = 0; i < 10; i++) {
      wait(t, 1900);
      socket.receive({ type: PING });
    }
    assert.deepEqual(events, ['hello']);
    // It was stopped after that: the next ping comes within half a second.
    wait(t, 2500);
    assert.deepEqual(events, ['hello', 'silence', 'end']);
    await assert.rejects(page, /has ended/);
  });

  it('ends if it says that it does not aggregate, and then nothing', async t => {
    open(t);
    socket.receive(GREETING);
    socket.receive({ type: PAGE });
    const pages = [link.page(FORMAT, 60_000), link.page(FORMAT, 60_000)];
    await new Promise(resolve => setImmediate(resolve));
    assert.equal(pageIds().length, 1);
    socket.receive({ type: PAGE });
    wait(t, 2500);
    assert.deepEqual(events, ['hello', 'silence', 'end']);
    for (const page of pages) await assert.rejects(page, /has ended/);
  });

  it('takes no answer to what was requested over an earlier link for one to its own requests', async t => {
    const answer = (pageId, text) => {
      socket.receive({ type: PAGE, pageId, page: Buffer.from(text).toString('base64') });
    };
    const request = async () => {
      open(t);
      socket.receive(GREETING);
      const page = link.page(FORMAT, 60_000);
      while (pageIds().length === 0) await Promise.resolve();
      return { page };
    };
    const { page: earlier } = await request();
    const [earlierId] = pageIds();
    socket.destroy();
    await assert.rejects(earlier, /has ended/);
    socket = new FakeSocket();
    t.mock.timers.reset();
    const { page } = await request();
    answer(earlierId, 'of another format');
    answer(pageIds()[0], 'a 1');
    assert.equal((await page).toString(), 'a 1');
  });
});
