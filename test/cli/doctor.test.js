'use strict';

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it } = require('node:test');
const { doctor } = require('../../lib/cli/doctor');
const { installedCopies } = require('../../lib/cli/installed-copies');
const { findUndefinedLabels } = require('../../lib/cli/undefined-labels');
const { makePlace } = require('../fixtures/cluster-harness');
const { Program } = require('../fixtures/program');

const MAIN = path.join(__dirname, '../../lib/cli/main.js');

/**
 * Writes files.
 *
 * @param {string} place
 * @param {Record<string, object | string>} files by path; objects as JSON
 */
function write(place, files) {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(place, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  }
}

/** This library, as it is installed. */
const OWN = { name: 'prom-client-cluster', version: '15.2.0' };
const APPLICATION = { name: 'app', dependencies: { 'prom-client': 'npm:prom-client-cluster@^15.2.0' } };

/** An application, and a package that has a prom-client of its own. */
const PINNED = {
  'package.json': { ...APPLICATION, dependencies: { ...APPLICATION.dependencies, pinning: '^1.0.0' } },
  'node_modules/prom-client/package.json': OWN,
  'node_modules/fits/package.json': {
    name: 'fits',
    version: '2.0.0',
    peerDependencies: { 'prom-client': '15' },
  },
  'node_modules/pinning/package.json': {
    ...{ name: 'pinning', version: '1.0.0', dependencies: { 'prom-client': '15.1.2' } },
  },
  'node_modules/pinning/node_modules/prom-client/package.json': { name: 'prom-client', version: '15.1.2' },
};

/**
 * @param {string} place
 * @param {...string} paths
 */
function diagnose(place, ...paths) {
  /** @type {string[]} */
  const lines = [];
  const status = doctor(place, paths, text => lines.push(text));
  return { status, text: lines.join('\n'), todo: lines.filter(line => line.startsWith('todo')) };
}

describe('doctor', () => {
  it('doctor has nothing to do where all packages use this library', t => {
    const place = makePlace(t);
    write(place, PINNED);
    fs.rmSync(path.join(place, 'node_modules/pinning'), { recursive: true });
    const { status, text } = diagnose(place);
    assert.equal(status, 0, text);
    assert.match(
      text,
      /^ok +prom-client-cluster 15\.2\.0 in node_modules.prom-client, used by this application, fits 2\.0\.0/m,
    );
    assert.match(text, /^Nothing is to be done\.$/m);
    assert.doesNotMatch(text, /overrides/);
  });

  it('doctor names a copy and who has brought it, and prints the lines for npm, Yarn and pnpm', t => {
    const place = makePlace(t);
    write(place, PINNED);
    const { status, text, todo } = diagnose(place);
    assert.equal(status, 1);
    assert.deepEqual(todo, [
      `todo  prom-client 15.1.2 in ${path.join('node_modules/pinning/node_modules/prom-client')}, used by ` +
        'pinning 1.0.0 (needs 15.1.2)',
    ]);
    const document = fs.readFileSync(path.join(__dirname, '../../docs/migration.md'), 'utf8');
    for (const [, json] of document.matchAll(/```json\n([^]*?)```/g))
      assert.ok(text.includes(json.trim()), json);
    assert.match(text, /^overrides:\n {2}'prom-client': npm:prom-client-cluster@\^15\.2\.0$/m);
    assert.match(text, /^ {3}rm -rf node_modules package-lock\.json && npm install$/m);
  });

  it('doctor finds the copies that packages use in the layout of pnpm, and no others', t => {
    const place = makePlace(t);
    const store = 'node_modules/.pnpm';
    write(place, {
      'package.json': PINNED['package.json'],
      [`${store}/prom-client-cluster@15.2.0/node_modules/prom-client-cluster/package.json`]: OWN,
      [`${store}/prom-client@15.1.2/node_modules/prom-client/package.json`]: {
        ...{ name: 'prom-client', version: '15.1.2' },
      },
      [`${store}/prom-client@14.0.0/node_modules/prom-client/package.json`]: {
        ...{ name: 'prom-client', version: '14.0.0' },
      },
      [`${store}/pinning@1.0.0/node_modules/pinning/package.json`]:
        PINNED['node_modules/pinning/package.json'],
    });
    const link = (from, to) =>
      fs.symlinkSync(path.join(place, store, to), path.join(place, from), 'junction');
    link('node_modules/prom-client', 'prom-client-cluster@15.2.0/node_modules/prom-client-cluster');
    link('node_modules/pinning', 'pinning@1.0.0/node_modules/pinning');
    link(`${store}/pinning@1.0.0/node_modules/prom-client`, 'prom-client@15.1.2/node_modules/prom-client');
    const copies = installedCopies(fs.realpathSync(place));
    assert.deepEqual(
      copies.map(({ name, version, alias, users }) => [name, version, alias, users.map(user => user.name)]),
      [
        ['prom-client-cluster', '15.2.0', 'prom-client', ['app']],
        ['prom-client', '15.1.2', 'prom-client', ['pinning']],
      ],
    );
  });

  it('doctor finds copies of the packages of a workspace, and those of the directories around it', t => {
    const place = makePlace(t);
    write(place, {
      ...PINNED,
      'packages/part/package.json': { name: 'part', version: '0.0.0', dependencies: { 'prom-client': '14' } },
      'packages/part/node_modules/prom-client/package.json': { name: 'prom-client', version: '14.2.0' },
    });
    fs.symlinkSync(path.join(place, 'packages/part'), path.join(place, 'node_modules/part'), 'junction');
    const ofRoot = diagnose(place).todo.map(line => /prom-client ([\d.]+)/.exec(line)?.[1]);
    assert.deepEqual(ofRoot.sort(), ['14.2.0', '15.1.2']);
    const ofPart = diagnose(path.join(place, 'packages/part')).todo.join('\n');
    assert.match(ofPart, /14\.2\.0.* used by this application/);
    assert.match(ofPart, /15\.1\.2.* used by pinning/);
  });

  it('doctor says that this library is not installed', t => {
    const place = makePlace(t);
    write(place, { 'package.json': { name: 'app' } });
    const { status, todo } = diagnose(place);
    assert.equal(status, 1);
    assert.match(
      todo.join(),
      /not installed here \(in a workspace, .*\): npm install prom-client@npm:prom-client-cluster/,
    );
  });

  it('doctor accepts two names of this library, and refuses two copies with one name', t => {
    const place = makePlace(t);
    write(place, {
      'package.json': { dependencies: { 'prom-client': '1', '@prometheus-io/client': '1', nesting: '1' } },
      'node_modules/prom-client/package.json': OWN,
      'node_modules/@prometheus-io/client/package.json': OWN,
    });
    const { status, text } = diagnose(place);
    assert.equal(status, 0, text);
    assert.match(text, /^note {2}These are two copies/m);
    write(place, {
      'node_modules/nesting/package.json': { name: 'nesting', dependencies: { 'prom-client': '15.1.0' } },
      'node_modules/nesting/node_modules/prom-client/package.json': { ...OWN, version: '15.1.0' },
    });
    assert.match(diagnose(place).todo.join(), /prom-client-cluster 15\.1\.0 .* used by nesting/);
  });

  it('doctor refers to Yarn where it keeps no packages in node_modules', t => {
    const place = makePlace(t);
    write(place, { 'package.json': APPLICATION, '.pnp.cjs': '' });
    const { status, text } = diagnose(place);
    assert.equal(status, 0);
    assert.match(text, /^note .*yarn why prom-client/m);
  });

  it('doctor finds queries for labels that the page of a cluster leaves out', t => {
    const place = makePlace(t);
    write(place, PINNED);
    fs.rmSync(path.join(place, 'node_modules/pinning'), { recursive: true });
    write(place, {
      'grafana/board.json': { panels: [{ expr: 'rate(a{route="undefined"}[5m])' }] },
      'rules.yml': 'groups:\n- expr: a{x="y",code=~"undefined|5.."}\n- expr: a{x="undefinedness"}\n',
      'notes.txt': 'a{route="undefined"}',
      'node_modules/fits/board.json': 'a{route="undefined"}',
    });
    const { status, text, todo } = diagnose(place);
    assert.equal(status, 1);
    assert.match(text, /^note {2}The page of one process has label="undefined"; those of a cluster/m);
    assert.deepEqual(todo, [
      `todo  ${path.join('grafana/board.json')}:1 route="undefined"`,
      'todo  rules.yml:2 code=~"undefined|5.."',
    ]);
    assert.equal(diagnose(place, path.join(place, 'grafana')).todo.length, 1);
    assert.equal(diagnose(place, path.join(place, 'notes.txt')).todo.length, 1);
  });

  it('doctor accepts queries that it has asked for, and finds the others of the same line', t => {
    const place = makePlace(t);
    write(place, { 'fixed.yml': 'expr: a{x=~"undefined|"} + b{x!~"|undefined"}\n' });
    assert.deepEqual(findUndefinedLabels([place]), []);
    write(place, { 'board.json': { a: 'a{x=~"undefined|"}', b: 'b{y="undefined"}', c: "c{z='undefined'}" } });
    const texts = findUndefinedLabels([path.join(place, 'board.json')]).map(({ text }) => text);
    assert.deepEqual(texts, ['y="undefined"', "z='undefined'"]);
  });
});

/**
 * @param {string[]} args
 * @param {object} [options] of the program
 */
async function run(args, options) {
  const program = new Program([MAIN, ...args], options);
  const status = await program.ended();
  return { status, output: program.output, errors: program.errors };
}

describe('the command prom-client-cluster', () => {
  it('the command prom-client-cluster names its subcommands, and fails without one', async () => {
    const help = await run(['--help']);
    assert.equal(help.status, 0);
    assert.match(help.output, /doctor \[path/);
    for (const args of [[], ['nonsense'], ['check'], ['toString'], ['doctor', '--fix']]) {
      const { status, output, errors } = await run(args);
      assert.deepEqual([status, output, errors], [2, '', help.output], args.join(' '));
    }
  });

  it('the command prom-client-cluster has the exit status of doctor', async t => {
    const place = makePlace(t);
    write(place, PINNED);
    const { status, output } = await run(['doctor'], { cwd: place });
    assert.equal(status, 1);
    assert.match(output, /^todo .*used by pinning/m);
    const missing = await run(['doctor', 'missing.json'], { cwd: place });
    assert.equal(missing.status, 2);
    assert.match(missing.errors, /ENOENT.*missing\.json/);
  });

  it('the command prom-client-cluster is silent if nobody reads its output to the end, as in `| head`', async t => {
    const place = makePlace(t);
    write(place, PINNED);
    const child = spawn(process.execPath, [MAIN, 'doctor'], { cwd: place });
    child.stdout.destroy();
    let errors = '';
    child.stderr.on('data', text => (errors += text));
    const [status] = await once(child, 'close');
    assert.deepEqual([status, errors], [1, '']);
  });

  it('the command prom-client-cluster says which directories clusters and groups can use', async t => {
    const place = makePlace(t);
    write(place, { 'package.json': { name: 'app' } });
    const long = path.join(place, 'x'.repeat(110));
    fs.mkdirSync(long);
    const directory = path.join(place, 'missing');
    const { output } = await run(['doctor'], {
      cwd: place,
      env: { TMPDIR: long, PROM_CLIENT_CLUSTER_DIRECTORY: directory },
    });
    assert.match(output, /^note {2}no directory can be created in .*missing \(ENOENT\); a cluster uses /m);
    if (process.platform !== 'win32')
      assert.match(output, /^ok {4}\/(dev\/shm|tmp) has room for sockets of groups$/m);
    const path120 = path.join(place, 'y'.repeat(120));
    const invalid = await run(['doctor'], { cwd: place, env: { PROM_CLIENT_CLUSTER_GROUP: path120 } });
    if (process.platform !== 'win32')
      assert.match(invalid.output, /^todo {2}PROM_CLIENT_CLUSTER_GROUP: .*too long for a socket/m);
  });
});
