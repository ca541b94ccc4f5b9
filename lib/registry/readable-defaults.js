'use strict';

const { DEFAULT_LABELS } = require('./metric-view');
const { checkLabelNamesAreValid } = require('./names');

/**
 * The default labels of a registry, without those that have no text or no valid name: a program may have
 * changed the object that it passed to setDefaultLabels().
 *
 * @param {any} registry
 * @param {(error: unknown, name: string) => void} [onUnreadable]
 * @param {boolean} [hasUndefined] whether those that are undefined are among them, as on the registry's own
 *   page. Other processes and threads leave them out, as JSON does
 * @returns {Record<string, string>}
 */
function readableDefaults(registry, onUnreadable = () => {}, hasUndefined = false) {
  const labels = registry[DEFAULT_LABELS] ?? {};
  /** @type {[name: string, text: string][]} */
  const readable = [];
  for (const name of Object.keys(labels)) {
    try {
      checkLabelNamesAreValid([name]);
      const value = labels[name];
      if (hasUndefined || value !== undefined) readable.push([name, String(value)]);
    } catch (error) {
      onUnreadable(error, name);
    }
  }
  return Object.fromEntries(readable);
}

module.exports = { readableDefaults };
