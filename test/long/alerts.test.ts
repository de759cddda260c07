// A real Prometheus and a real Alertmanager beside a real lab: the trouble of each runbook raises its alert, and the
// alert ends when the page was followed. Rules, scrapes and evaluations as docs/MONITORING.md says: every 15 s. How long
// it took is written to the output. That a minute is enough is shown in virtual time (test/cli/alerts.test.ts).
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePorts } from '../../src/lab/free-port.js';
import { waitUntil } from '../../src/lab/processes.js';
import { STANDSTILL_MS } from '../support/patience.js';
import { done, follow, healthy, labDown, labUp, pages, rows, seq, STATES } from '../support/runbooks.js';
import { newHome } from '../support/spawn-seq.js';

/** The alert of each page. []: its state is no trouble. */
const RAISED: Record<string, string[]> = {
  'No leader': ['SeqUnknown', 'SeqSequencerDown'],
  'No quorum': ['SeqNoQuorum'],
  'A quorum lost its memory': ['SeqNoQuorum'],
  'A divergent node': ['SeqStreamDamaged'],
  // No sequencer runs in these states, so none can tell more than that.
  'A pending block': ['SeqUnknown', 'SeqSequencerDown'],
  'A conflict': ['SeqUnknown', 'SeqSequencerDown'],
  Flapping: ['SeqFlapping'],
  'A slow or hanging node': ['SeqNodeDown'],
  'A wrong epoch': ['SeqUnknown', 'SeqSequencerDown'],
  'Planned maintenance of a sequencer': [],
  'A rolling restart of Redis': [],
  // The leader fills it within seconds: shorter than any alert waits.
  'A node was wiped, or restored from an old dump': [],
  'A node is out of memory': ['SeqMemoryFull'],
  'A clock was wrong': ['SeqClockOff'],
  'Grow and shrink a cluster': [],
  'Moving a node': [],
};
/** What else makes the state last, or makes it trouble. */
const ALSO: Record<string, () => Promise<void>> = {
  // Three changes of leadership are flapping, two are not.
  Flapping: () => done('stepdown -c lab --yes --timeout 30s', 'wait -c lab --for healthy --timeout 1m'),
};
/** They end some minutes after what they tell of, whatever anybody does. */
const TELLS_OF_EVENTS = ['SeqFlapping', 'SeqOutOfMemory', 'SeqDamagedEntry', 'SeqTermEnded', 'SeqAlarm'];

/** An hour is asked for: SEQ_QUIET_MINUTES=60. */
const QUIET_MINUTES = Number(process.env['SEQ_QUIET_MINUTES'] ?? 10);

const home = newHome();
const started: ChildProcess[] = [];
let checks: Server;
let prometheus = '';
let alertmanager = '';

function start(program: string, args: string[]): void {
  const child = spawn(program, args, { cwd: home, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (data: Buffer) => (said = (said + data.toString()).slice(-4000)));
  child.on('error', (error) => {
    throw new Error(`${program} is needed: apt-get install prometheus prometheus-alertmanager`, { cause: error });
  });
  child.on('exit', (code) => {
    if (code !== 0 && code !== null) throw new Error(`${program} ended with ${code}: ${said}`);
  });
  started.push(child);
}

const json = async (url: string) => (await (await fetch(url)).json()) as never;

/** The names of the alerts that Prometheus shows as firing. */
async function firing(): Promise<string[]> {
  const { data } = (await json(`${prometheus}/api/v1/alerts`)) as {
    data: { alerts: { state: string; labels: { alertname: string } }[] };
  };
  return data.alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname);
}

/** Those that Alertmanager would tell somebody now. */
async function told(): Promise<string[]> {
  const alerts = (await json(`${alertmanager}/api/v2/alerts?active=true`)) as { labels: { alertname: string } }[];
  return alerts.map(({ labels }) => labels.alertname);
}

async function until(what: string, holds: () => Promise<boolean>): Promise<number> {
  const startedAt = performance.now();
  await waitUntil({ what, timeoutMs: 2 * STANDSTILL_MS, everyMs: 500 }, async () =>
    (await holds().catch(() => false)) ? true : undefined,
  );
  return Math.round((performance.now() - startedAt) / 1000);
}

beforeAll(async () => {
  await labUp();
  const [rules] = await seq('alerts print -c lab');
  writeFileSync(join(home, 'rules.yml'), rules?.stdout ?? '');
  // In place of the textfile collector: the check runs whenever it is scraped.
  checks = createServer((_request, response) => {
    void seq('check stream -c lab --depth 500 -o prometheus').then(([answer]) => response.end(answer?.stdout ?? ''));
  }).listen(0, '127.0.0.1');
  await once(checks, 'listening');
  const [own = 0, manager = 0] = await freePorts(2);
  const sequencers = [...(await rows()).values()]
    .filter(({ url }) => url.startsWith('http'))
    .map(({ url }) => new URL(url).host);
  expect(sequencers).toHaveLength(2);
  writeFileSync(
    join(home, 'prometheus.yml'),
    JSON.stringify({
      global: { scrape_interval: '15s', evaluation_interval: '15s', scrape_timeout: '14s' },
      rule_files: ['rules.yml'],
      alerting: { alertmanagers: [{ static_configs: [{ targets: [`127.0.0.1:${manager}`] }] }] },
      scrape_configs: [
        { job_name: 'seq', static_configs: [{ targets: sequencers }] },
        {
          job_name: 'checks',
          static_configs: [{ targets: [`127.0.0.1:${(checks.address() as AddressInfo).port}`] }],
        },
      ],
    }),
  );
  writeFileSync(join(home, 'alertmanager.yml'), '{"route":{"receiver":"nobody"},"receivers":[{"name":"nobody"}]}');
  prometheus = `http://127.0.0.1:${own}`;
  alertmanager = `http://127.0.0.1:${manager}`;
  start('prometheus-alertmanager', [
    '--config.file=alertmanager.yml',
    `--web.listen-address=127.0.0.1:${manager}`,
    '--cluster.listen-address=',
    '--storage.path=manager',
    '--log.level=error',
  ]);
  start('prometheus', [
    '--config.file=prometheus.yml',
    `--web.listen-address=127.0.0.1:${own}`,
    '--storage.tsdb.path=data',
    '--log.level=error',
  ]);
  await until('Prometheus to have scraped every target', async () => {
    const { data } = (await json(`${prometheus}/api/v1/query?query=count(up==1)`)) as {
      data: { result: { value: [number, string] }[] };
    };
    return data.result[0]?.value[1] === '3';
  });
}, 600_000);

afterAll(async () => {
  checks?.closeAllConnections();
  checks?.close();
  for (const child of started) {
    child.removeAllListeners('exit');
    child.kill();
  }
  await labDown();
}, 600_000);

describe('alerts of a lab', () => {
  test('runbooks: each page is here', () => {
    expect(Object.keys(RAISED)).toEqual(pages.map(({ title }) => title));
  });

  test(
    `alerts: ${QUIET_MINUTES} minutes in which nothing happens → none`,
    async () => {
      await healthy();
      const end = Date.now() + QUIET_MINUTES * 60_000;
      await waitUntil({ what: 'the time to pass', timeoutMs: 2 * QUIET_MINUTES * 60_000, everyMs: 1000 }, async () =>
        Date.now() > end ? true : undefined,
      );
      // Also those that have ended since.
      const query = `count_over_time(ALERTS{alertstate="firing"}[${QUIET_MINUTES}m])`;
      const { data } = (await json(`${prometheus}/api/v1/query?query=${encodeURIComponent(query)}`)) as {
        data: { result: { metric: { alertname: string } }[] };
      };
      expect(data.result.map(({ metric }) => metric.alertname)).toEqual([]);
    },
    3 * QUIET_MINUTES * 60_000,
  );

  test.each(pages)(
    'alerts: $title → raised, told to somebody, and ended by the page',
    async (page) => {
      const wanted = RAISED[page.title] ?? [];
      const isNews = wanted.filter((name) => !TELLS_OF_EVENTS.includes(name));
      await healthy();
      const lasting = async () => (await firing()).filter((name) => !TELLS_OF_EVENTS.includes(name));
      await until('no alert', async () => (await lasting()).length === 0);
      await STATES[page.title]?.();
      await ALSO[page.title]?.();
      const raised = await until(`${wanted.join(' and ')} in ${page.title}`, async () => {
        const names = await firing();
        return wanted.every((name) => names.includes(name));
      });
      await until('Alertmanager to know', async () => {
        const names = await told();
        return wanted.every((name) => names.includes(name));
      });
      await follow(page);
      const ended = await until(`${isNews.join(' and ')} to end`, async () => (await lasting()).length === 0);
      process.stdout.write(`${page.title}: ${wanted.join(', ')} after ${raised} s, ended after ${ended} s\n`);
    },
    900_000,
  );
});
