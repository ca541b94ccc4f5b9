'use strict';

// A group, clusters and threads in one program: every count is on every page, once.

const assert = require('node:assert/strict');
const { fork } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it } = require('node:test');
const { samplesOf } = require('../fixtures/group');

const PROGRAM = path.join(__dirname, 'fixtures', 'group-of-clusters.js');
const PATIENCE = 60_000;
/** What the program counts at once, in a digit for each kind of member. */
const [PRIMARY, WORKER, THREAD] = [1, 100, 10_000];

/** A primary with two workers, each with a thread. */
class TestCluster {
  #waiting = new Map();
  #lastId = 0;

  /** @param {object} env */
  constructor(env) {
    this.process = fork(PROGRAM, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    // When its workers have ended, too: they have the pipe.
    this.hasEnded = once(this.process, 'close');
    this.process.stdout?.resume();
    this.hasStarted = once(this.process, 'message');
    this.process.on('message', ({ id, result, error }) => {
      if (error === undefined) this.#waiting.get(id)?.resolve(result);
      else this.#waiting.get(id)?.reject(new Error(error));
    });
  }

  /**
   * @param {string} action
   * @param {number} [worker] by default the primary
   * @returns {Promise<any>} its result
   */
  do(action, worker) {
    const id = ++this.#lastId;
    const done = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.process.send({ id, worker, action });
    return done;
  }

  /**
   * @param {number} [worker] by default the primary
   * @returns {Promise<any>} what its page shows
   */
  async page(worker) {
    const page = samplesOf(await this.do('page', worker));
    return {
      jobs: page.get('jobs_total'),
      records: page.get('sizes_count'),
      sleeping: page.get('sleeping'),
      members: page.get('prom_client_cluster_group_members'),
    };
  }
}

describe('a group of clusters whose workers have threads', { skip: process.platform === 'win32' }, () => {
  it('shows what all have counted, on each page, while threads wake, a worker ends and a cluster is killed', async t => {
    const place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'group-of-clusters-'));
    const env = { TMPDIR: place, PROM_CLIENT_CLUSTER_GROUP: 'clusters' };
    const [first, second] = [new TestCluster(env), new TestCluster(env)];
    t.after(async () => {
      for (const each of [first, second]) {
        each.process.kill('SIGKILL');
        await each.hasEnded;
      }
      fs.rmSync(place, { recursive: true });
    });
    await Promise.all([first.hasStarted, second.hasStarted]);

    /** Waits until the processes have found each other. That one has ended is known a moment later, too. */
    const until = async (members, sleeping) => {
      const end = performance.now() + PATIENCE;
      for (;;) {
        const page = await second.page();
        if (page.members === members && page.sleeping === sleeping) return;
        assert.ok(performance.now() < end, `in vain: ${JSON.stringify(page)}`);
      }
    };
    const shows = async (processes, expected) =>
      assert.deepEqual(
        await Promise.all(processes.map(([each, worker]) => each.page(worker))),
        processes.map(() => expected),
      );

    await until(6, 4);
    const all = [first, second].flatMap(each => [undefined, 0, 1].map(worker => [each, worker]));
    let jobs = 2 * PRIMARY + 4 * (WORKER + THREAD);
    await shows(all, { jobs, records: 10, sleeping: 4, members: 6 });

    await Promise.all([first.do('wake', 0), first.do('wake', 1), second.do('wake', 1)]);
    jobs += 3 * THREAD;
    await shows(all, { jobs, records: 13, sleeping: 4, members: 6 });

    await first.do('exit', 0);
    await until(5, 3);
    const living = all.filter(([each, worker]) => each !== first || worker !== 0);
    await shows(living, { jobs, records: 13, sleeping: 3, members: 5 });

    await Promise.all([first.do('wake', 1), second.do('wake', 0)]);
    jobs += 2 * THREAD;
    await shows(living, { jobs, records: 15, sleeping: 3, members: 5 });

    // Its worker ends with it.
    first.process.kill('SIGKILL');
    await until(3, 2);
    await second.do('wake', 0);
    jobs += THREAD;
    const left = living.filter(([each]) => each === second);
    await shows(left, { jobs, records: 16, sleeping: 2, members: 3 });
  });
});
