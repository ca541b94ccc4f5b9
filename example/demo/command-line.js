'use strict';

// Options, exit codes and signals of a program that is run in a terminal.

const EXIT_CODE = { ok: 0, failed: 1, usage: 2, interrupted: 130 };

/**
 * @template T
 * @param {string} usage
 * @param {(args: string[]) => T & {help?: boolean}} readOptions throws for options that are none
 * @returns {T | undefined} undefined if the usage was printed instead; the exit code is then set
 */
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
    // The reader of the output may exit (`npm run demo | head`).
    process.stdout.on('error', () => resolve());
  });
}

/** @param {string} text */
function print(text) {
  process.stdout.write(text);
}

module.exports = { EXIT_CODE, interruption, optionsOrUsage, print };
