'use strict';

// A tree of processes (one primary and its workers) that serves one library, seen from the runner.

const { fork } = require('node:child_process');
const path = require('node:path');

const PRIMARY = path.join(__dirname, 'primary.js');
const STOP_GRACE = 5000;
const CALL_DEADLINE = 90_000;
const WORKER_DEADLINE = 5000; // more for each, because they all start at once

/**
 * @typedef {object} TreeSettings
 * @property {string} client see clients.js
 * @property {number} samples lines of each worker's exposition
 * @property {number} workers
 * @property {'integers' | 'floats'} kind of the values recorded
 * @property {boolean} [serve] workers also serve HTTP requests
 * @property {boolean} [group] the workers are a group, and the primary none of the measured library's
 * @property {boolean} [alone] the workers are processes that have nothing to do with each other
 * @property {boolean} [workersServeMetrics] each on a port of its own
 */

/** @type {Set<Tree>} */
const standing = new Set();

class Tree {
  #primary;
  #waiting = new Map();
  #lastId = 0;
  #exited;
  #round = 0;

  /**
   * @param {TreeSettings} settings
   * @param {string} program of the primary
   */
  constructor(settings, program) {
    this.settings = settings;
    // a process group of its own: a signal to it reaches every process of the tree, and Ctrl-C reaches only
    // the runner
    this.#primary = fork(program, [JSON.stringify(settings)], { detached: true });
    this.#primary.on('message', message => this.#settle(message));
    this.#exited = new Promise(resolve => {
      this.#primary.once('exit', () => {
        standing.delete(this);
        for (const id of this.#waiting.keys()) this.#settle({ id, error: 'the primary has gone' });
        resolve();
      });
    });
    standing.add(this);
  }

  /**
   * Starts a tree and waits until all workers have recorded their samples.
   *
   * @param {TreeSettings} settings
   * @param {string} [program] of the primary; obeys at least `ready` and `stop`
   * @returns {Promise<Tree>}
   */
  static async start(settings, program = PRIMARY) {
    const tree = new Tree(settings, program);
    const { servicePort, metricsPort, workerPorts } = await tree.call('ready');
    tree.servicePort = servicePort;
    tree.metricsPort = metricsPort;
    tree.workerPorts = workerPorts;
    return tree;
  }

  /** @returns {number} of the primary, and of the process group of all its processes */
  get pid() {
    return this.#primary.pid;
  }

  /**
   * Makes every worker record more.
   *
   * @returns {Promise<Record<string, import('../shared/workload.js').Total>[]>} the totals of each worker
   */
  change() {
    this.#round += 1;
    return this.call('change', { round: this.#round });
  }

  /**
   * Sends the primary a command (see its `commands`).
   *
   * @param {string} command
   * @param {object} [settings]
   * @returns {Promise<any>} rejects with the primary's error, if it has exited, or after 90 s + 5 s a worker
   */
  call(command, settings = {}) {
    const id = ++this.#lastId;
    const deadline = CALL_DEADLINE + this.settings.workers * WORKER_DEADLINE;
    return new Promise((resolve, reject) => {
      const overdue = () => this.#settle({ id, error: `no answer to ${command} in ${deadline} ms` });
      const timer = setTimeout(overdue, deadline);
      this.#waiting.set(id, { resolve, reject, timer });
      this.#primary.send(
        { id, command, settings },
        error => error && this.#settle({ id, error: error.message }),
      );
    });
  }

  #settle({ id, answer, error }) {
    const call = this.#waiting.get(id);
    if (!call) return;
    this.#waiting.delete(id);
    clearTimeout(call.timer);
    if (error === undefined) call.resolve(answer);
    else call.reject(new Error(error));
  }

  /**
   * Lets workers and primary exit by themselves, so they can clean up, and kills the rest after five seconds.
   */
  async stop() {
    if (!standing.has(this)) return;
    this.call('stop').catch(() => {}); // answered by its exit
    const grace = setTimeout(() => this.#kill(), STOP_GRACE);
    await this.#exited;
    clearTimeout(grace);
  }

  #kill() {
    try {
      process.kill(-this.#primary.pid, 'SIGKILL');
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
  }
}

/** Stops every tree that is still running. */
async function stopAllTrees() {
  await Promise.all([...standing].map(tree => tree.stop()));
}

module.exports = { Tree, stopAllTrees };
