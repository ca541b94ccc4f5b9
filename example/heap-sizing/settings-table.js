'use strict';

const { OPERATIONS } = require('../concurrency/tasks');
const { mebibytes, milliseconds, percent, textTable } = require('../concurrency/text-table');

const OPERATION_NAMES = Object.keys(OPERATIONS);

const COLUMNS = {
  'semi-space MiB': ({ size }) => size,
  'tasks/s': ({ throughput }) => throughput.toFixed(0),
  'scavenges/s': ({ scavenges }) => scavenges.toFixed(1),
  'GC minor': ({ minorShare }) => percent(minorShare),
  'GC other': ({ share, minorShare }) => percent(Math.max(0, share - minorShare)),
  'GC share (rounds)': ({ share, shares }) => `${percent(share)} (${shares.map(percent).join(', ')})`,
  [`P99 ms ${OPERATION_NAMES.join(' / ')}`]: figures =>
    OPERATION_NAMES.map(name => milliseconds(figures.p99(name))).join(' / '),
  'majors/s': ({ majors }) => majors.toFixed(1),
  'promoted MiB/s': ({ promoted }) => mebibytes(promoted),
  'old MiB': ({ oldSpace }) => mebibytes(oldSpace),
  'new MiB (resident)': ({ newSpace, newSpacePhysical }) =>
    `${mebibytes(newSpace)} (${mebibytes(newSpacePhysical)})`,
  'RSS MiB': ({ residentMemory }) => mebibytes(residentMemory),
};

/**
 * @param {import('./setting-figures').SettingFigures[]} settings
 * @returns {string}
 */
function settingsTable(settings) {
  const cells = Object.values(COLUMNS);
  return textTable(
    Object.keys(COLUMNS),
    settings.map(figures => cells.map(cell => cell(figures))),
  );
}

module.exports = { settingsTable };
