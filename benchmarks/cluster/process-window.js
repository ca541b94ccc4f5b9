'use strict';

// Measures one process during a window: CPU, gaps of its event loop, peak memory, the library's own sections.
// Runs in the primary and in every worker.

const fs = require('node:fs');
const { monitorEventLoopDelay } = require('node:perf_hooks');
const { SectionClock } = require('../shared/section-clock.js');

const RESET_PEAK_MEMORY = '5'; // see proc(5), /proc/pid/clear_refs

/** @type {Record<string, {count: number, longest: number}>} milliseconds, by name, since the window began */
let sections = {};

new SectionClock((name, milliseconds) => {
  const section = (sections[name] ??= { count: 0, longest: 0 });
  section.count += 1;
  section.longest = Math.max(section.longest, milliseconds);
}).start();

/**
 * @typedef {object} Readings
 * @property {number} mainThreadCpu milliseconds on a CPU
 * @property {number} processCpu milliseconds, all threads, user and system
 * @property {number} peakMemory highest resident set in the window, MiB
 * @property {number | null} longestGap longest time between two ticks of a 1 ms timer, milliseconds; null
 *   unless asked for
 * @property {Record<string, {count: number, longest: number}>} sections the library's synchronous sections,
 *   milliseconds on a CPU
 */

class ProcessWindow {
  #mainThreadCpu;
  #processCpu;
  #delays = null;

  /**
   * Begins now. Call it right after the loop has slept: the kernel updates the CPU time of a thread when it
   * leaves the CPU, and otherwise only at the timer tick, every 4 ms (measured). A thread that has been
   * running reads an old value.
   *
   * @param {{gaps: boolean}} options the timer that finds gaps costs CPU itself, so windows measure one or
   *   the other
   */
  constructor({ gaps }) {
    this.#mainThreadCpu = mainThreadCpu();
    this.#processCpu = process.cpuUsage();
    sections = {};
    fs.writeFileSync('/proc/self/clear_refs', RESET_PEAK_MEMORY);
    if (gaps) {
      this.#delays = monitorEventLoopDelay({ resolution: 1 });
      this.#delays.enable();
    }
  }

  /**
   * Ends the window. Call it right after a sleep, so that the gap timer sees the last gap.
   *
   * @returns {Readings}
   */
  end() {
    const mainThread = mainThreadCpu() - this.#mainThreadCpu;
    const { user, system } = process.cpuUsage(this.#processCpu);
    this.#delays?.disable();
    return {
      mainThreadCpu: mainThread,
      processCpu: (user + system) / 1e3,
      peakMemory: peakMemory(),
      longestGap: this.#delays && this.#delays.max / 1e6,
      sections,
    };
  }
}

/** Milliseconds of CPU time of the main thread; its thread id is the process id. */
function mainThreadCpu() {
  const [nanoseconds] = fs.readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ');
  return Number(nanoseconds) / 1e6;
}

/** MiB */
function peakMemory() {
  const [, kibibytes] = /^VmHWM:\s*(\d+) kB$/m.exec(fs.readFileSync('/proc/self/status', 'utf8'));
  return Number(kibibytes) / 1024;
}

module.exports = { ProcessWindow };
