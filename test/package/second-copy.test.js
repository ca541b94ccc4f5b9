'use strict';

// A project in which a dependency pins prom-client, with each package manager: what docs/migration.md says of
// one copy for all packages, and what the command prom-client-cluster finds. Installs from the npm registry,
// so it needs a network.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const { ROOT, run, npm, makePlace, pack, manifestOf } = require('./fixtures/drop-in-package');
const { serveRegistry } = require('./fixtures/own-registry');

const MANAGERS = [
  ...['npm10@npm:npm@10', 'npm11@npm:npm@11', 'pnpm9@npm:pnpm@9', 'pnpm10@npm:pnpm@10'],
  ...['yarn1@npm:yarn@1', 'yarn4@npm:@yarnpkg/cli-dist@4'],
];
const PINNING = { name: 'pinning', version: '1.0.0', dependencies: { 'prom-client': '15.1.2' } };
const PROGRAM = `
  const { register, metricsHandler } = require('prom-client');
  const pinned = require('pinning');
  new pinned.Counter({ name: 'pinned_total', help: 'h' }).inc();
  register.metrics().then(page => console.log(pinned.metricsHandler === metricsHandler, page));`;

const document = fs.readFileSync(path.join(ROOT, 'docs/migration.md'), 'utf8');
const [overrides, resolutions] = Array.from(document.matchAll(/```json\n([^]*?)```/g), ([, json]) =>
  JSON.parse(json),
);
const [, yaml] = /```yaml\n(overrides:[^]*?)```/.exec(document) ?? [];
const ALIAS = /npm install (prom-client@npm:\S+)/.exec(document)?.[1] ?? '';
const ALIAS_OF_YARN = /yarn add (prom-client@npm:\S+)/.exec(document)?.[1] ?? '';

const place = makePlace({ after });
/** @type {(() => void)[]} */
const closing = [];
after(() => closing.forEach(close => close()));
/** @type {string} */
let registry;

before(async () => {
  const pinning = path.join(place, 'pinning');
  fs.mkdirSync(pinning);
  fs.writeFileSync(path.join(pinning, 'package.json'), JSON.stringify(PINNING));
  fs.writeFileSync(path.join(pinning, 'index.js'), "module.exports = require('prom-client');");
  fs.writeFileSync(path.join(place, 'package.json'), '{}');
  const [{ tarball }] = await Promise.all([
    pack(place),
    npm(['pack', '--pack-destination', place], pinning),
    npm(['install', '--ignore-scripts', ...MANAGERS], place),
  ]);
  registry = await serveRegistry({ after: close => closing.push(close) }, [
    { manifest: manifestOf(ROOT), tarball },
    { manifest: PINNING, tarball: path.join(place, 'pinning-1.0.0.tgz') },
  ]);
});

/** A project, and a package manager in it. */
class Project {
  #bin;
  /** @type {[manager: string, bin: string]} */
  #manager;

  /**
   * @param {string} manager directory of the package manager in node_modules
   * @param {string} bin its program
   * @param {Record<string, unknown>} [manifest]
   */
  constructor(manager, bin, manifest = {}) {
    this.directory = fs.mkdtempSync(path.join(place, `${manager}-`));
    this.#manager = [manager, bin];
    this.#bin = path.join(place, 'node_modules', manager, 'bin', bin);
    this.write({ name: 'application', version: '1.0.0', private: true, ...manifest });
    fs.writeFileSync(path.join(this.directory, 'program.js'), PROGRAM);
    // Yarn looks for a project around a directory that has none.
    if (bin === 'yarn.js') fs.writeFileSync(path.join(this.directory, 'yarn.lock'), '');
  }

  /** @returns {Project} the same in another directory */
  copy() {
    const copy = new Project(...this.#manager);
    fs.cpSync(this.directory, copy.directory, { recursive: true, verbatimSymlinks: true });
    return copy;
  }

  get manifest() {
    return manifestOf(this.directory);
  }

  /** @param {object} manifest */
  write(manifest) {
    fs.writeFileSync(path.join(this.directory, 'package.json'), JSON.stringify(manifest, null, 2));
  }

  /** @param {...string} args */
  async do(...args) {
    const { stdout } = await run(process.execPath, [this.#bin, ...args], { cwd: this.directory, env: ENV() });
    return stdout;
  }

  /** @param {string[]} args */
  async node(...args) {
    return run(process.execPath, args, { cwd: this.directory });
  }

  /** @returns {Promise<number>} exit status of `doctor` */
  async doctor() {
    const main = path.join(this.directory, 'node_modules/prom-client/lib/cli/main.js');
    return this.node(main, 'doctor').then(
      () => 0,
      error => error.code,
    );
  }

  /** The program's page, and doctor, see the metric of the package that pins prom-client. */
  async hasOneCopy() {
    const { stdout, stderr } = await this.node('program.js');
    assert.match(stdout, /^true .*^pinned_total 1$/ms);
    assert.doesNotMatch(stderr, /PROM_CLIENT_CLUSTER_COPY/);
    assert.equal(await this.doctor(), 0);
  }

  async hasTwoCopies() {
    const { stdout, stderr } = await this.node('program.js');
    assert.doesNotMatch(stdout, /pinned_total/);
    assert.match(stderr, /\[PROM_CLIENT_CLUSTER_COPY\] .*used by the package pinning\./);
    assert.equal(await this.doctor(), 1);
  }
}

const ENV = () => ({
  npm_config_registry: registry,
  npm_config_fetch_retries: '1',
  // 'silent' if the tests were started so.
  npm_config_loglevel: 'error',
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_update_notifier: 'false',
  npm_config_cache: path.join(place, 'cache'),
  npm_config_store_dir: path.join(place, 'store'),
  YARN_REGISTRY: registry,
  YARN_NPM_REGISTRY_SERVER: registry.replace(/\/$/, ''),
  YARN_UNSAFE_HTTP_WHITELIST: '127.0.0.1',
  YARN_ENABLE_TELEMETRY: '0',
  YARN_ENABLE_IMMUTABLE_INSTALLS: '0',
  YARN_CACHE_FOLDER: path.join(place, 'yarn-cache'),
  YARN_GLOBAL_FOLDER: path.join(place, 'yarn-global'),
  YARN_NODE_LINKER: 'node-modules',
});

for (const manager of ['npm10', 'npm11']) {
  describe(manager, () => {
    /** @type {Project} in which the overrides came after the installation */
    let installed;

    before(async () => {
      const project = new Project(manager, 'npm-cli.js');
      await project.do('install', 'pinning', 'prom-client@15.1.3');
      await project.do('install', ALIAS);
      await project.hasTwoCopies();
      project.write({ ...project.manifest, ...overrides });
      await project.do('install');
      installed = project;
    });

    it(`${manager}: overrides do nothing in a project that is installed; the dependent installed again has one copy`, async () => {
      const project = installed.copy();
      await assert.rejects(project.do('ls', 'prom-client'), /ELSPROBLEMS/);
      await project.hasTwoCopies();
      for (const args of [['install', ALIAS], ['dedupe']]) {
        await project.do(...args);
        await assert.rejects(project.do('ls', 'prom-client'), /ELSPROBLEMS/, args.join(' '));
      }
      await project.do('install', 'pinning');
      await project.do('ls', 'prom-client');
      await project.hasOneCopy();
    });

    it(`${manager}: overrides apply to a project whose node_modules and package-lock.json were removed`, async () => {
      const project = installed.copy();
      const remove = name => fs.rmSync(path.join(project.directory, name), { recursive: true });
      remove('node_modules');
      await project.do('install');
      await project.hasTwoCopies();
      ['node_modules', 'package-lock.json'].forEach(remove);
      await project.do('install');
      await project.hasOneCopy();
    });

    it(`${manager}: both lines before the first installation give one copy, and npx has the command`, async () => {
      const dependencies = { pinning: '^1.0.0', 'prom-client': ALIAS.replace('prom-client@', '') };
      const project = new Project(manager, 'npm-cli.js', { dependencies, ...overrides });
      await project.do('install');
      await project.hasOneCopy();
      assert.match(await project.do('exec', '--', 'prom-client-cluster', '--help'), /doctor \[path/);
    });
  });
}

describe('pnpm', () => {
  it('pnpm 9: overrides in package.json apply to a project that is installed by `pnpm dedupe`', async () => {
    const project = new Project('pnpm9', 'pnpm.cjs');
    await project.do('add', 'pinning', ALIAS);
    await project.hasTwoCopies();
    project.write({ ...project.manifest, pnpm: { overrides: resolutions.resolutions } });
    await project.do('dedupe');
    await project.hasOneCopy();
  });

  it('pnpm 10: overrides in pnpm-workspace.yaml apply to a project that is installed by `pnpm dedupe`', async () => {
    const project = new Project('pnpm10', 'pnpm.cjs');
    await project.do('add', 'pinning', ALIAS);
    await project.hasTwoCopies();
    fs.appendFileSync(path.join(project.directory, 'pnpm-workspace.yaml'), yaml ?? '');
    await project.do('dedupe');
    await project.hasOneCopy();
    assert.match(await project.do('exec', 'prom-client-cluster', '--help'), /doctor \[path/);
  });
});

describe('Yarn', () => {
  for (const manager of ['yarn1', 'yarn4']) {
    it(`${manager}: resolutions apply to a project that is installed by \`yarn install\``, async () => {
      const project = new Project(manager, 'yarn.js');
      await project.do('add', 'pinning', ALIAS_OF_YARN);
      await project.hasTwoCopies();
      project.write({ ...project.manifest, ...resolutions });
      await project.do('install');
      await project.hasOneCopy();
    });
  }
});
