'use strict';

// Groups for minutes, and of many processes. The short forms are in test/cluster/processes/groups.test.js and
// test/package/group*.test.js. Each page is compared with what the processes have counted themselves.

const assert = require('node:assert/strict');
const { randomInt } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');
const { setTimeout: pause } = require('node:timers/promises');

const { TestGroup } = require('../fixtures/group.js');

const MINUTE = 60_000;
const MEMBERS = 64;
const AT_A_TIME = 9;
const CHAOS_ROUNDS = 60;

describe('a process that takes over a group', { skip: process.platform === 'win32' }, () => {
  for (const [what, signal] of [
    ['killed', 'SIGKILL'],
    ['stopped', 'SIGSTOP'],
  ]) {
    it(`may be ${what} at each step of that: no count that was on a page is lost, and none is there twice`, async t => {
      // No process writes a checkpoint.
      const group = new TestGroup({ option: { group: 'test', checkpointInterval: 10 * MINUTE } });
      t.after(() => group.close());
      const plan = path.join(group.place, 'plan');
      group.env.GROUP_FAULT_PLAN = plan;
      group.env.NODE_OPTIONS = `--require ${require.resolve('./fixtures/takeover-faults.js')}`;
      let counted = 0;
      const shown = async member => (await member.page()).get('requests_total');
      for (let step = 1; ; step++) {
        await Promise.all(Array.from({ length: 4 - group.running.length }, () => group.start()));
        await group.until(page => page.get('open') === 4);
        const { leader, others } = await group.roles();
        for (const member of group.running) await member.do('inc', step);
        counted += 4 * step;
        await group.until(page => page.get('requests_total') === counted, others[0]);
        // The file appears as a whole.
        fs.writeFileSync(`${plan}.new`, JSON.stringify({ step, signal }));
        fs.renameSync(`${plan}.new`, plan);
        const hit = member => fs.existsSync(`${plan}.${member.process.pid}`);
        await leader.kill();
        const done = new Set();
        const pages = others.map(async member => {
          while (member.isRunning) {
            const total = await shown(member).catch(error => {
              if (!/has ended|is stopped|channel closed|EPIPE/i.test(error.message)) throw error;
            });
            if (total === undefined) {
              await pause(1);
              continue;
            }
            assert.equal(total, counted, `step ${step}`);
            break;
          }
          done.add(member);
        });
        if (signal === 'SIGSTOP') {
          const all = Promise.all(pages);
          const isWaiting = () => others.some(member => !done.has(member) && !hit(member));
          while (isWaiting()) await Promise.race([all, pause(10)]);
          const stopped = others.find(hit);
          // It may be about to stop itself.
          await stopped?.stop();
          stopped?.wake();
        }
        await Promise.all(pages);
        fs.rmSync(plan, { force: true });
        const found = others.find(hit);
        if (signal === 'SIGKILL') await found?.ended;
        await group.until(page => page.get('open') === group.running.length);
        for (const member of group.running) assert.equal(await shown(member), counted, `step ${step}`);
        if (found === undefined) {
          t.diagnostic(`${step - 1} steps`);
          assert.ok(step > 10, `${step}`);
          break;
        }
        fs.rmSync(`${plan}.${found.process.pid}`);
      }
    });
  }
});

describe('groups', { skip: process.platform === 'win32' }, () => {
  it(`${MEMBERS} members: each shows the numbers of all, the leader is killed, all are replaced`, async t => {
    const group = new TestGroup();
    t.after(() => group.close());
    const processes = await group.startMany(MEMBERS);
    const watch = group.watch({ pause: 50 });
    await Promise.all(processes.map(member => member.do('busy', 200)));
    await watch.settled();
    await watch.exact(MEMBERS);
    const { leader } = await group.roles();
    await leader.kill();
    await watch.settled();
    const old = group.running;
    while (old.length > 0) {
      const replace = async member => {
        const [newcomer] = await Promise.all([group.start(), member.end('SIGTERM')]);
        await newcomer.do('busy', 200);
      };
      await Promise.all(old.splice(0, AT_A_TIME).map(replace));
    }
    await watch.settled();
    await watch.exact(10);
    await watch.stop();
    await group.until(page => page.get('open') === MEMBERS - 1);
  });

  it(`${MEMBERS} members that end at once leave their counts to two processes that have just started`, async t => {
    // No process writes a checkpoint.
    const group = new TestGroup({ option: { group: 'test', checkpointInterval: MINUTE } });
    t.after(() => group.close());
    const old = await group.startMany(MEMBERS);
    const watch = group.watch({ pause: 50 });
    await Promise.all(old.map(member => member.do('busy', 200)));
    await watch.settled();
    await Promise.all([group.start(), group.start()]);
    await Promise.all(old.map(member => member.end('SIGTERM')));
    await watch.settled();
    await watch.exact(10);
    await watch.stop();
  });

  it('what happens to processes at random costs no count', async t => {
    const group = new TestGroup({ option: { group: 'test', checkpointInterval: 100 } });
    t.after(() => group.close());
    const start = async () => (await group.start()).do('busy');
    await group.startMany(3);
    await Promise.all(group.running.map(member => member.do('busy')));
    const watch = group.watch();
    /** Every other time the leader. */
    const any = async () => {
      const { leader = group.running[0] } = await group.roles();
      return randomInt(2) === 0 ? leader : group.running[randomInt(group.running.length)];
    };
    const events = {
      start,
      exit: async () => {
        await (await any()).end('SIGTERM');
        await start();
      },
      kill: async () => {
        await (await any()).kill();
        await start();
      },
      stop: async () => {
        const member = await any();
        await member.stop();
        await pause(randomInt(4000));
        member.wake();
      },
      hold: async () => (await any()).do('hold', randomInt(4000)),
      kills: async () => {
        await Promise.all([(await any()).kill(), start()]);
      },
    };
    const names = Object.keys(events);
    for (let i = 0; i < CHAOS_ROUNDS; i++) {
      const name = names[randomInt(names.length)];
      const leader = (await group.roles()).leader?.name;
      t.diagnostic(`${i}: ${name}, ${group.running.length} processes, ${leader} leads`);
      await events[name]();
      // Often while the last event still has effects.
      if (randomInt(3) === 0) await watch.settled();
      while (group.running.length > 6) await (await any()).end('SIGTERM');
      while (group.running.length < 2) await start();
    }
    await watch.settled();
    await watch.exact(10);
    await watch.stop();
  });
});
