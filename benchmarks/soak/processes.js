'use strict';

// What the system says about a process and a directory. Linux only; elsewhere these numbers are missing.

const fs = require('node:fs');

const PAGE_BYTES = 4096;

/**
 * @param {number} pid
 * @returns {{rss: number, descriptors: number} | undefined} undefined if it is gone
 */
function measureProcess(pid) {
  try {
    const pages = Number(fs.readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
    return { rss: pages * PAGE_BYTES, descriptors: fs.readdirSync(`/proc/${pid}/fd`).length };
  } catch {
    return undefined;
  }
}

/**
 * @param {string} directory
 * @returns {number} files in it and below
 */
function filesIn(directory) {
  return fs.readdirSync(directory, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
    .length;
}

/**
 * The growth per hour by least squares.
 *
 * @param {{at: number, value: number}[]} points `at` in seconds
 * @returns {number} NaN of fewer than two points
 */
function slopePerHour(points) {
  const count = points.length;
  const meanAt = points.reduce((sum, { at }) => sum + at, 0) / count;
  const mean = points.reduce((sum, { value }) => sum + value, 0) / count;
  let covariance = 0;
  let variance = 0;
  for (const { at, value } of points) {
    covariance += (at - meanAt) * (value - mean);
    variance += (at - meanAt) ** 2;
  }
  return (covariance / variance) * 3600;
}

module.exports = { measureProcess, filesIn, slopePerHour };
