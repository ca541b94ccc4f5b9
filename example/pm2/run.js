'use strict';

// Runs example/pm2/app.js under PM2, sends requests, scrapes any of the instances, reloads, and shows that
// the sum is right:
//   node example/pm2/run.js
//
// Needs `pm2` in the PATH, or uses npx to get it. PM2's files go to a temporary directory.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const PORT = process.env.PORT ?? '3000';
const URL = `http://localhost:${PORT}`;
const REQUESTS = 200;

const home = fs.mkdtempSync(path.join(os.tmpdir(), 'example-pm2-'));

/** @param {string[]} args */
function pm2(...args) {
  const [command, ...first] = process.env.PM2 ? [process.execPath, process.env.PM2] : ['npx', '--yes', 'pm2'];
  const env = { ...process.env, PM2_HOME: home, PORT };
  const { status, stdout, stderr } = spawnSync(command, [...first, ...args], { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`pm2 ${args.join(' ')}: ${stdout}${stderr}`);
}

/** @param {string} place */
async function get(place) {
  const response = await fetch(`${URL}${place}`, { headers: { connection: 'close' } });
  return response.text();
}

async function total() {
  return Number(/^http_requests_total (\d+)$/m.exec(await get('/metrics'))?.[1]);
}

async function reachable() {
  while (!(await get('/metrics').catch(() => ''))) await new Promise(resolve => setTimeout(resolve, 100));
}

async function run() {
  pm2('start', path.join(__dirname, 'ecosystem.config.js'));
  await reachable();
  const instances = new Set();
  for (let i = 0; i < REQUESTS; i++) instances.add(await get('/'));
  console.log(`${REQUESTS} requests to ${instances.size} instances: http_requests_total ${await total()}`);
  pm2('reload', 'example');
  console.log(`after pm2 reload:                http_requests_total ${await total()}`);
  pm2('scale', 'example', '2');
  console.log(`after pm2 scale example 2:       http_requests_total ${await total()}`);
}

run().finally(() => {
  pm2('kill');
  fs.rmSync(home, { recursive: true, force: true });
});
