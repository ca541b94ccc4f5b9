'use strict';

const { EXIT_CODE, interruption, optionsOrUsage, print } = require('../demo/command-line');
const { leftovers, snapshotDirectories } = require('../demo/leftovers');
const { LiveLine } = require('../demo/live-line');

/** The processes that a measurement has started. They are ended with it, also after an error. */
class OwnedProcesses {
  #processes = [];
  #ended = false;

  /**
   * @template {{pid: number, end: () => Promise<void>}} Owned
   * @param {() => Owned} start
   * @returns {Owned}
   * @throws {Error} when everything has been ended: an interrupted measurement must not go on
   */
  start(start) {
    if (this.#ended) throw new Error('interrupted');
    const owned = start();
    this.#processes.push(owned);
    return owned;
  }

  /** @returns {Promise<number[]>} the ids of those that there were */
  async end() {
    this.#ended = true;
    await Promise.all(this.#processes.map(owned => owned.end()));
    return this.#processes.map(({ pid }) => pid);
  }
}

/**
 * Runs a measurement from the command line. An interruption ends all processes that it started.
 *
 * @template {{help: boolean}} Options
 * @param {object} command
 * @param {string} command.usage
 * @param {(argv: string[]) => Options} command.readOptions throws with a message for the user
 * @param {(options: Options, processes: OwnedProcesses, liveLine: LiveLine) => Promise<boolean>}
 *   command.measure resolves with whether the figures agree
 */
async function runCommand({ usage, readOptions, measure }) {
  const options = optionsOrUsage(usage, readOptions);
  if (options === undefined) return;
  const directoriesBefore = snapshotDirectories();
  const processes = new OwnedProcesses();
  const liveLine = new LiveLine(process.stdout);
  try {
    const agree = await Promise.race([measure(options, processes, liveLine), interruption()]);
    liveLine.close();
    if (agree === undefined) print('\ninterrupted\n');
    process.exitCode = exitCodeOf(agree);
  } catch (error) {
    liveLine.close();
    process.stderr.write(`\n${error.stack}\n`);
    process.exitCode = EXIT_CODE.failed;
  }
  const left = leftovers({ pids: await processes.end(), directoriesBefore });
  print(left.length === 0 ? '\nnothing left running\n' : `\nLEFT: ${left.join('; ')}\n`);
  if (left.length > 0) process.exitCode = EXIT_CODE.failed;
}

function exitCodeOf(agree) {
  if (agree === undefined) return EXIT_CODE.interrupted;
  return agree ? EXIT_CODE.ok : EXIT_CODE.failed;
}

module.exports = { runCommand, print };
