'use strict';

const { percent, milliseconds } = require('./text-table');

/** @typedef {import('./step-figures').StepFigures} StepFigures */

// Two runs at the same limit differ by a few per cent; below the knee a doubled limit gains far more.
const SAME_THROUGHPUT = 0.1;
const MUCH_GARBAGE_COLLECTION = 0.05;

/**
 * The knee: the lowest limit whose throughput is close to the best.
 *
 * @param {StepFigures[]} steps in rising order, at least one
 * @returns {StepFigures}
 */
function kneeOf(steps) {
  const best = Math.max(...steps.map(step => step.throughput));
  return steps.find(step => step.throughput >= best * (1 - SAME_THROUGHPUT));
}

/**
 * @param {StepFigures[]} steps in rising order, at least one
 * @returns {string} which limit to choose, and why
 */
function verdict(steps) {
  const knee = kneeOf(steps);
  const highest = steps.at(-1);
  const sentences =
    knee === highest ? [noKneeYet(steps)] : [kneeText(knee, steps), beyondText(knee, highest)];
  return [...sentences, garbageText(knee, highest)].join('\n');
}

function noKneeYet(steps) {
  const { limit } = steps.at(-1);
  if (steps.length === 1)
    return `One limit has no knee: compare it with others, such as --steps ${limit},${limit * 2}.`;
  return (
    `Throughput still grew at a limit of ${limit}, the highest that was measured: the knee is there or above. ` +
    `Go on with --steps ${[1, 2, 4].map(factor => limit * factor)}.`
  );
}

function kneeText(knee, steps) {
  const below = steps[steps.indexOf(knee) - 1];
  const gain = below ? `, and ${below.throughput.toFixed(0)} at ${below.limit}` : '';
  return `Choose a limit of ${knee.limit}: there the process does ${knee.throughput.toFixed(0)} tasks a second${gain}.`;
}

function beyondText(knee, highest) {
  const operation = slowedMost(knee, highest);
  const change = highest.throughput / knee.throughput - 1;
  const [before, after] = [knee, highest].map(step => milliseconds(step.latency[operation].p99));
  return (
    `Up to ${highest.limit} throughput changed by ${change > 0 ? '+' : ''}${(change * 100).toFixed(0)} %, ` +
    `and the P99 of ${operation} went from ${before} ms to ${after} ms.`
  );
}

function slowedMost(knee, highest) {
  const slowing = name => highest.latency[name].p99 / knee.latency[name].p99;
  const measured = Object.keys(knee.latency).filter(name => !Number.isNaN(slowing(name)));
  return measured.reduce((worst, name) => (slowing(name) > slowing(worst) ? name : worst));
}

function garbageText(knee, highest) {
  const most = Math.max(knee.gcShare, highest.gcShare);
  const shares = `Garbage collection takes ${percent(knee.gcShare)} of the time at a limit of ${knee.limit}`;
  const advice =
    most < MUCH_GARBAGE_COLLECTION
      ? 'it is not what limits the process.'
      : 'see example/heap-sizing for what a larger new space makes of that.';
  return knee === highest
    ? `${shares}: ${advice}`
    : `${shares} and ${percent(highest.gcShare)} at ${highest.limit}: ${advice}`;
}

module.exports = { kneeOf, verdict };
