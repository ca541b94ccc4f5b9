'use strict';

const { leftovers, snapshotDirectories } = require('../demo/leftovers');
const { LiveLine } = require('../demo/live-line');

const EXIT_CODE = { ok: 0, failed: 1, usage: 2, interrupted: 130 };

/** The processes that a measurement has started, so that they can be ended however it ends. */
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
 * Runs a measurement from the command line. It may be interrupted at any time, and what it started is ended with it.
 *
 * @template {{help: boolean}} Options
 * @param {object} command
 * @param {string} command.usage
 * @param {(argv: string[]) => Options} command.readOptions throws with a text for the person at the keyboard
 * @param {(options: Options, processes: OwnedProcesses, liveLine: LiveLine) => Promise<boolean>} command.measure
 *   resolves with whether the figures agree
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

function optionsOrUsage(usage, readOptions) {
  try {
    const options = readOptions(process.argv.slice(2));
    if (!options.help) return options;
    print(usage);
  } catch (error) {
    process.stderr.write(`${error.message}\n\n${usage}`);
    process.exitCode = EXIT_CODE.usage;
  }
  return undefined;
}

/** @returns {Promise<void>} resolves with the first signal to end; further ones change nothing */
function interruption() {
  return new Promise(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => resolve());
    // Whoever reads the output may go away.
    process.stdout.on('error', () => resolve());
  });
}

function exitCodeOf(agree) {
  if (agree === undefined) return EXIT_CODE.interrupted;
  return agree ? EXIT_CODE.ok : EXIT_CODE.failed;
}

/** @param {string} text */
function print(text) {
  process.stdout.write(text);
}

module.exports = { runCommand, print };
