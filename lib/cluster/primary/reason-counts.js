'use strict';

// Runs on the primary's loop. Counts by reason. Workers may send any text as a reason, so the number of
// different reasons is limited.

const MAX_REASONS = 32;

/**
 * @param {Map<string, number>} counts by reason
 * @param {string} reason counted as `other` if there are already many different reasons
 */
function countReason(counts, reason) {
  const key = counts.has(reason) || counts.size < MAX_REASONS ? reason : 'other';
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

module.exports = { countReason };
