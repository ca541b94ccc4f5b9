'use strict';

// Groups of plain processes whose leader stops, whose directory is removed, or that named pipes link. What
// each group does is in test/cluster/processes/groups.test.js.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it, beforeEach, afterEach } = require('node:test');

const { removeWhileUsed } = require('../fixtures/cluster-harness.js');
const { TestGroup } = require('../fixtures/group.js');

describe('a group of plain processes that changes', { skip: process.platform === 'win32' }, () => {
  /** @type {TestGroup} */
  let group;
  let counted = 0;

  beforeEach(() => {
    group = new TestGroup({ option: { group: 'test', checkpointInterval: 100 } });
    counted = 0;
  });
  afterEach(() => group.close());

  /** Each process counts, and each page shows all that was counted before. */
  async function count(processes) {
    for (const member of processes) {
      await member.do('inc', 1);
      counted++;
    }
  }

  async function checkPages(processes) {
    for (const member of processes) assert.equal((await member.page()).get('requests_total'), counted);
  }

  it('a leader that is stopped is replaced, and is a member when it wakes', async () => {
    const processes = await group.startMany(3);
    const watch = group.watch();
    await Promise.all(processes.map(member => member.do('busy')));
    await watch.settled();
    const { leader, others } = await group.roles();
    await leader.stop();
    await watch.settled();
    // A death that only the new one can have added to the totals.
    await others[0].end('SIGTERM');
    await watch.settled();
    const generations = fs.readdirSync(group.directory).filter(name => name.startsWith('g'));
    leader.wake();
    await watch.settled();
    await watch.exact(5);
    const found = fs.readdirSync(group.directory).filter(name => name.startsWith('g'));
    assert.deepEqual(found, generations);
    const states = await Promise.all([leader, others[1]].map(member => member.do('state')));
    const shown = states.map(({ group: { isLeader } }) => isLeader);
    assert.deepEqual(shown, [false, true]);
    assert.equal(`g${states[0].group.generation}`, generations[0]);
    // It still knows how to end.
    await leader.end('SIGTERM');
    await watch.settled();
    await watch.stop();
    await group.until(samples => samples.get('open') === 1);
  });

  it("the aggregator 'first' shows the oldest process that lives, whoever aggregates", async () => {
    const start = async () => {
      const member = await group.start();
      await group.until(page => page.get('open') === group.running.length);
      return member;
    };
    const oldestOf = async () => {
      await group.until(page => page.get('open') === group.running.length);
      const pages = await Promise.all(group.running.map(member => member.page()));
      return [...new Set(pages.map(page => group.processes[page.get('oldest')]))];
    };
    const [first, second, third] = [await start(), await start(), await start()];
    assert.deepEqual(await oldestOf(), [first]);
    await first.kill();
    assert.deepEqual(await oldestOf(), [second]);
    await start();
    assert.deepEqual(await oldestOf(), [second]);
    await second.end('SIGTERM');
    assert.deepEqual(await oldestOf(), [third]);
    const { leader } = await group.roles();
    if (leader !== third) await leader.kill();
    assert.deepEqual(await oldestOf(), [third]);
  });

  it('a removed directory is replaced by that of a new group, with the counts of those who live', async () => {
    const processes = await group.startMany(3);
    await count(processes);
    const { others } = await group.roles();
    await checkPages(others);
    await others[0].kill();
    const living = group.running;
    await group.until(samples => samples.get('open') === 2);
    removeWhileUsed(group.directory);
    counted = living.reduce((sum, member) => sum + member.counted, 0);
    await count(living);
    await group.until(samples => samples.get('requests_total') === counted);
    await checkPages(living);
    const newcomer = await group.start();
    await count([newcomer]);
    await group.until(samples => samples.get('requests_total') === counted, newcomer);
    await checkPages(living);
  });

  it('whose files were deleted starts anew: those who live lose nothing', async () => {
    const processes = await group.startMany(4);
    await count(processes);
    const { others } = await group.roles();
    await checkPages(others);
    await others[0].kill();
    const living = group.running;
    await group.until(samples => samples.get('open') === 3);
    for (const name of fs.readdirSync(group.directory, { recursive: true })) {
      const file = path.join(group.directory, name);
      // Some are removed meanwhile.
      if (fs.lstatSync(file, { throwIfNoEntry: false })?.isFile()) fs.rmSync(file, { force: true });
    }
    for (const member of living) {
      const page = await group.until(samples => samples.get('open') === 3, member);
      for (const { name, counted: own } of living)
        assert.equal(page.get(`counted_total{process="${name}"}`), own);
      assert.ok(page.get('requests_total') <= counted);
    }
    for (const member of living) await member.end('SIGTERM');
    assert.equal(fs.existsSync(group.directory), false);
  });

  it('with named pipes, as on Windows: a process that ends leaves the group to the others', async () => {
    group.env.TEMP = group.place;
    group.env.NODE_OPTIONS = `--require ${require.resolve('../fixtures/named-pipes.js')}`;
    const processes = await group.startMany(2);
    await count(processes);
    const { leader, others } = await group.roles();
    await leader.do('exit');
    await leader.ended;
    await checkPages(others);
    assert.equal((await others[0].do('state')).group.isLeader, true);
  });
});
