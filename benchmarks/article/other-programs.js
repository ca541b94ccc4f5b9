'use strict';

// Measures the CPU time of other programs, which distinguishes a disturbed run from a slow one without
// looking at latencies. Reads /proc; on other systems there is no figure.

const fs = require('node:fs');

const TICKS = 100; // a second; what /proc counts in, on all of Linux

class OtherPrograms {
  #proc;
  #now;
  #groups;
  #before;
  #began;

  /**
   * @param {number[]} groups process groups that are part of the measurement; this process's own is added
   * @param {{proc?: string, now?: () => number}} [options] for tests: another directory than /proc, another
   *   clock (ms)
   */
  constructor(groups, { proc = '/proc', now = () => performance.now() } = {}) {
    if (!fs.existsSync(`${proc}/stat`)) return;
    this.#proc = proc;
    this.#now = now;
    this.#groups = new Set([...groups, groupAndTicksOf(proc, process.pid).group]);
    this.#began = now();
    this.#before = this.#ticks();
  }

  /** @returns {number | null} average CPUs that other programs used since the start; null if unknown */
  processors() {
    if (!this.#before) return null;
    const { all, own } = this.#ticks();
    const seconds = (this.#now() - this.#began) / 1e3;
    return Math.max(0, (all - this.#before.all - (own - this.#before.own)) / TICKS / seconds);
  }

  #ticks() {
    const pids = fs.readdirSync(this.#proc).filter(name => /^\d+$/.test(name));
    const own = pids
      .map(pid => groupAndTicksOf(this.#proc, pid))
      .filter(({ group }) => this.#groups.has(group));
    return { all: busyTicks(this.#proc), own: own.reduce((sum, { ticks }) => sum + ticks, 0) };
  }
}

/** Of all CPUs: everything but idle and I/O wait; includes the time stolen by other virtual machines. */
function busyTicks(proc) {
  const [, user, nice, system, , , irq, softirq, steal] = fs
    .readFileSync(`${proc}/stat`, 'utf8')
    .split(/\s+/, 9)
    .map(Number);
  return user + nice + system + irq + softirq + steal;
}

/** See proc(5); the name of the program, in brackets, may contain any character. */
function groupAndTicksOf(proc, pid) {
  let line;
  try {
    line = fs.readFileSync(`${proc}/${pid}/stat`, 'utf8');
  } catch {
    return { group: undefined, ticks: 0 }; // it has ended
  }
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  return { group: Number(fields[2]), ticks: Number(fields[11]) + Number(fields[12]) };
}

module.exports = { OtherPrograms };
