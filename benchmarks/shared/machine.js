'use strict';

const os = require('node:os');

/**
 * The properties of the machine on which a result depends, without anything that identifies it.
 *
 * @returns {string}
 */
function describeMachine() {
  const cpus = os.cpus();
  const memory = Math.round(os.totalmem() / 2 ** 30);
  const load = os.loadavg()[0].toFixed(1);
  return `Node ${process.version}, ${cpus.length} x ${cpus[0]?.model.trim() ?? 'CPU'}, ${memory} GiB, load ${load}`;
}

module.exports = { describeMachine };
