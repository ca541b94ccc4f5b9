'use strict';

const { execFileSync } = require('node:child_process');
const { clientNamed } = require('../../shared/clients.js');
const { median } = require('../../shared/statistics.js');

const PROCESSES = 9;
const PROGRAM = `const began = performance.now(); require(process.argv[1]); console.log(performance.now() - began)`;

/** Each in a new process that loads nothing else; the files are in the page cache after the first. */
async function measure({ client }) {
  const file = require.resolve(clientNamed(client).module);
  const times = Array.from({ length: PROCESSES }, () =>
    Number(execFileSync(process.execPath, ['-e', PROGRAM, file], { encoding: 'utf8' })),
  );
  return { time: median(times) };
}

module.exports = {
  title: 'Loading, `require`',
  note: `Median of ${PROCESSES} processes that load nothing else.`,
  cases: [{ key: 'time', title: '`require` of the package', figures: { time: 'ms' }, seconds: 6, measure }],
};
