'use strict';

// Another Prometheus client, or another copy of this one, has its own registry. A page without that registry
// looks as if nothing had been recorded, so the process is warned.

const { processState, ownProcessState } = require('./process-state');

const CODE = 'PROM_CLIENT_CLUSTER_COPY';

const TEXT =
  'Metrics of another copy of the Prometheus client are missing here, because they are in a registry of its ' +
  'own: %s. `npx prom-client-cluster doctor` says what to add to package.json.';

const ENTRY =
  /[\\/]node_modules[\\/](?:prom-client|prom-client-cluster|@prometheus-io[\\/]client)[\\/]index\.js$/;

/** The last package in a path; not the directory in which pnpm has all of them. */
const PACKAGE = /^.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/.@][^\\/]*)[\\/]/;

let scrapes = 0;

/**
 * To be called at each scrape. Looks for other clients at the first, second, fourth, eighth scrape and so on:
 * with five thousand modules that takes one or two milliseconds.
 *
 * @param {Iterable<any>} registries that are shown
 */
function warnOfOtherClients(registries) {
  scrapes++;
  if ((scrapes & (scrapes - 1)) !== 0 || processState().hasWarned) return;
  try {
    // Not require(): these files are also bundled for browsers.
    const { _cache: modules = {} } = /** @type {any} */ (process.getBuiltinModule?.('node:module') ?? {});
    const shown = [...registries];
    const missing = Object.keys(modules).filter(
      file => ENTRY.test(file) && isMissing(file, modules[file], shown),
    );
    if (missing.length === 0) return;
    ownProcessState().hasWarned = true;
    const list = missing.map(file => descriptionOf(file, modules)).join(', ');
    process.emitWarning(
      TEXT.replace('%s', () => list),
      { code: CODE },
    );
  } catch {
    // Somebody else's exports may be anything.
  }
}

/**
 * @param {string} file
 * @param {any} module
 * @param {any[]} registries that are shown
 * @returns {boolean} whether it is another client, and nothing of what was registered with it is shown
 */
function isMissing(file, module, registries) {
  if (isOwn(file)) return false;
  const { register, Registry } = module.exports;
  const [metric] = register?.getMetricsAsArray?.() ?? [];
  if (metric === undefined) return false;
  // In a cluster and in threads, the page has the metrics of all copies of this package.
  if (processState().copies.some(copy => copy.deref() === Registry)) return false;
  return !registries.some(registry => registry.getMetricsAsArray().includes(metric));
}

/** @param {string} file of a package: its index.js */
function isOwn(file) {
  // A bundle that is an ES module has no __dirname.
  if (typeof __dirname !== 'string') return false;
  return __dirname.replaceAll('\\', '/') === file.replaceAll('\\', '/').replace(/index\.js$/, 'lib/registry');
}

/**
 * @param {string} file of another client
 * @param {Record<string, any>} modules by file
 * @returns {string} where it is, and who has loaded it
 */
function descriptionOf(file, modules) {
  const directory = file.slice(0, -'/index.js'.length);
  const user = Object.keys(modules).find(each => modules[each].children?.includes(modules[file]));
  // Unknown if it was imported by an ES module. A nested copy is that of the package around it.
  const around = directory.replace(/node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+$/, '');
  const name = PACKAGE.exec(user ?? around)?.[1].replaceAll('\\', '/');
  const who = name === undefined ? user : `the package ${name}`;
  return who === undefined ? directory : `${directory}, used by ${who}`;
}

module.exports = { warnOfOtherClients };
