'use strict';

// The published package: the content of the tarball, its entry points for both module systems and for
// TypeScript, and its declared dependencies.

const assert = require('node:assert');
const fs = require('node:fs');
const { builtinModules } = require('node:module');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const { ROOT, run, makePlace, pack, installAlone, manifestOf } = require('./fixtures/drop-in-package');

const MANIFEST = manifestOf(ROOT);

// Files of prom-client that programs import directly, and what each exports.
const DEEP = {
  'lib/registry': client => client.Registry,
  'lib/counter': client => client.Counter,
  'lib/gauge': client => client.Gauge,
  'lib/histogram': client => client.Histogram,
  'lib/summary': client => client.Summary,
  'lib/cluster': client => client.AggregatorRegistry,
  'lib/pushgateway': client => client.Pushgateway,
  'lib/defaultMetrics': client => client.collectDefaultMetrics,
};
const DEEP_MEMBERS = {
  'lib/bucketGenerators': ['linearBuckets', 'exponentialBuckets'],
  'lib/metricAggregators': ['aggregators'],
  'lib/validation': ['validateMetricName'],
};

const place = makePlace({ after });
/** @type {string} */
let tarball;
/** @type {string[]} */
let files;
/** @type {string} */
let application;
/** @type {string} */
let installed;

before(async () => {
  ({ tarball, files } = await pack(place));
  application = path.join(place, 'application');
  installed = await installAlone(tarball, application);
});

/** Runs a program in the application's directory. */
function runProgram(name, code) {
  fs.writeFileSync(path.join(application, name), code);
  return run(process.execPath, [name], { cwd: application, timeout: 300_000 });
}

/** The public entry points, as a program imports them. */
function entryPoints() {
  const keys = Object.keys(MANIFEST.exports).filter(key => key !== './aggregator-thread');
  return keys.map(key => path.posix.join('prom-client', key));
}

describe('the tarball', () => {
  it('the tarball has the library, its types, documents and examples, and nothing else', () => {
    const expected =
      /^(package\.json|(README|CHANGELOG|CONTRIBUTING|SECURITY)\.md|LICENSE|index\.js|index\.d\.ts|docs\/.+\.(md|json)|example\/.+|lib\/.+\.(js|d\.ts))$/;
    const shown = files.filter(file => !expected.test(file));
    assert.deepStrictEqual(shown, []);
    for (const file of ['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', 'index.js', 'index.d.ts']) {
      assert.ok(files.includes(file), file);
    }
  });

  // Pictures are not: npm's site shows those of the repository that package.json names.
  it('every file that a document links to is in the tarball', () => {
    for (const document of files.filter(file => file.endsWith('.md'))) {
      const text = fs.readFileSync(path.join(installed, document), 'utf8');
      for (const [, target] of text.matchAll(/(?<!!\[[^\]]*)\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(target)) continue;
        const linked = path.join(installed, path.dirname(document), target.split('#')[0]);
        assert.ok(fs.existsSync(linked), `${document} links to ${target}`);
      }
    }
  });

  it('every file that package.json names is in the tarball', () => {
    const targets = Object.values(MANIFEST.exports).flatMap(target =>
      typeof target === 'string' ? [target] : Object.values(target),
    );
    const types = Object.values(MANIFEST.typesVersions['*']).flat();
    for (const target of [...targets, ...types, MANIFEST.main, MANIFEST.types]) {
      assert.ok(files.includes(path.posix.normalize(target)), target);
    }
  });

  it('the version satisfies ^15.0.0, ^15.1.3 and 15.x', () => {
    // No prerelease tag, because these ranges would not accept it.
    const [, minor, patch] = /^15\.(\d+)\.(\d+)$/.exec(MANIFEST.version);
    assert.ok(Number(minor) > 1 || (Number(minor) === 1 && Number(patch) >= 3));
  });

  it('no script runs at installation', () => {
    const { scripts } = manifestOf(installed);
    for (const name of ['preinstall', 'install', 'postinstall', 'prepare'])
      assert.ok(!(name in scripts), name);
    const { packages } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8'));
    const withScript = Object.keys(packages).filter(name => packages[name].hasInstallScript);
    assert.deepStrictEqual(withScript, []);
  });

  // Those of development would fail a change that has nothing to do with them.
  it('no dependency of an application has a known vulnerability', async t => {
    const audit = await run('npm', ['audit', '--omit=dev', '--json'], { cwd: ROOT }).catch(error => error);
    const report = audit.stdout === '' ? audit : JSON.parse(audit.stdout);
    if (report.metadata === undefined) {
      t.skip(`the registry does not answer npm audit: ${report.message ?? report.error?.summary}`);
      return;
    }
    assert.strictEqual(report.metadata.vulnerabilities.total, 0, audit.stdout);
  });

  it('types are found by every way to resolve modules, and have the right module format', async () => {
    const attw = path.join(__dirname, 'programs/node_modules/@arethetypeswrong/cli/dist/index.js');
    // Rejects if the tool reports a problem.
    const { stdout } = await run(process.execPath, [attw, tarball, '--format', 'ascii', '--no-color']);
    for (const key of Object.keys(MANIFEST.exports)) {
      const name = path.posix.join(MANIFEST.name, key);
      assert.ok(stdout.includes(`"${name}"`), `${name} is not checked`);
    }
  });
});

describe('dependencies', () => {
  const sources = () => files.filter(file => /^(index\.js|lib\/.+\.js)$/.test(file));

  it('every package that a file requires is declared', () => {
    const required = new Set();
    for (const file of sources()) {
      const code = fs.readFileSync(path.join(installed, file), 'utf8').replace(/^\s*(\/\/|\*|\/\*).*$/gm, '');
      for (const [, name] of code.matchAll(/require(?:\.resolve)?\('([^']+)'\)/g)) {
        if (name.startsWith('.')) {
          assert.ok(fs.existsSync(require.resolve(path.join(installed, path.dirname(file), name))), name);
        } else if (!name.startsWith('node:') && !builtinModules.includes(name)) {
          required.add(name);
        }
      }
    }
    assert.deepStrictEqual([...required].sort(), Object.keys(MANIFEST.dependencies).sort());
  });

  it('the OpenTelemetry API is an optional peer, and not installed with the package', async () => {
    assert.deepStrictEqual(MANIFEST.peerDependenciesMeta, { '@opentelemetry/api': { optional: true } });
    assert.deepStrictEqual(Object.keys(MANIFEST.peerDependencies), ['@opentelemetry/api']);
    assert.ok(!fs.existsSync(path.join(application, 'node_modules/@opentelemetry')));
  });

  it('prom-client is not a dependency', () => {
    for (const field of ['dependencies', 'optionalDependencies', 'peerDependencies']) {
      assert.ok(
        !Object.keys(MANIFEST[field] ?? {}).some(name => /prom(-|etheus-io\/)client/.test(name)),
        field,
      );
    }
  });
});

describe('installed as prom-client', () => {
  it('every entry point loads, with and without extension', async () => {
    const specifiers = entryPoints();
    const { stdout } = await runProgram(
      'every-entry-point.js',
      `for (const name of ${JSON.stringify(specifiers)}) {
         const loaded = require(name);
         if (Object.keys(loaded).length === 0 && typeof loaded !== 'function') throw new Error(name);
         const withExtension = name + '.js';
         if (/\\/(index|lib\\/\\w+|lib\\/metrics\\/\\w+)$/.test(name) && require(withExtension) !== loaded) throw new Error(withExtension);
         console.log(name);
       }`,
    );
    assert.deepStrictEqual(stdout.trim().split('\n'), specifiers);
  });

  it('the entry point of the thread does nothing but fail outside a thread', async () => {
    const { stdout } = await runProgram(
      'thread.js',
      `const os = require('node:os');
       const before = os.getPriority();
       try { require('prom-client/aggregator-thread') } catch ({ message }) { console.log(message, os.getPriority() - before) }`,
    );
    assert.strictEqual(stdout, 'This file is run by a thread, see docs/bundling.md 0\n');
  });

  it('the files of prom-client export what the root exports', async () => {
    const names = Object.keys(DEEP);
    const { stdout } = await runProgram(
      'deep-imports.js',
      `const client = require('prom-client');
       const deep = { ${Object.entries(DEEP).map(([name, of]) => `'${name}': ${of}`)} };
       for (const [name, of] of Object.entries(deep)) {
         for (const file of [name, name + '.js']) {
           if (of(client) === undefined || require('prom-client/' + file) !== of(client)) throw new Error(file);
         }
         console.log(name);
       }
       for (const [file, members] of Object.entries(${JSON.stringify(DEEP_MEMBERS)})) {
         for (const member of members) {
           if (require('prom-client/' + file)[member] !== client[member]) throw new Error(file + ' ' + member);
         }
       }
       if (require('prom-client/index') !== client) throw new Error('index');
       if (require('prom-client/lib/registry').globalRegistry !== client.register) throw new Error('globalRegistry');
       if (require('prom-client/package.json').name !== 'prom-client-cluster') throw new Error('package.json');`,
    );
    assert.deepStrictEqual(stdout.trim().split('\n'), names);
  });

  it('ES modules get every name, from the same instance as CommonJS', async () => {
    const names = Object.keys(require('../..'));
    const { stdout } = await runProgram(
      'named.mjs',
      `import { ${names} } from 'prom-client';
       import client from 'prom-client';
       import * as namespace from 'prom-client';
       import Counter2 from 'prom-client/lib/counter';
       import { globalRegistry, merge } from 'prom-client/lib/registry';
       import { setRegistries } from 'prom-client/lib/cluster';
       import { metricsList } from 'prom-client/lib/defaultMetrics';
       import { createRequire } from 'node:module';
       const required = createRequire(import.meta.url)('prom-client');
       const imported = { ${names} };
       for (const name of ${JSON.stringify(names)}) {
         if (imported[name] === undefined || imported[name] !== required[name] || namespace[name] !== required[name]) {
           throw new Error(name);
         }
       }
       if (client !== required || Counter2 !== Counter) throw new Error('default');
       if (globalRegistry !== register || merge !== Registry.merge) throw new Error('lib/registry');
       if (setRegistries !== AggregatorRegistry.setRegistries) throw new Error('lib/cluster');
       if (metricsList !== collectDefaultMetrics.metricsList) throw new Error('lib/defaultMetrics');
       new Counter({ name: 'c', help: 'h' }).inc();
       console.log(client.contentType, await required.register.metrics());`,
    );
    assert.match(stdout, /^text\/plain; version=0\.0\.4; charset=utf-8 # HELP c h\n# TYPE c counter\nc 1\n/);
  });
});
