// Which configuration does a sequencer take from what the nodes show (docs/PROTOCOL.md section 8, I13)?
import { expect, test } from 'vitest';
import { configurationText } from '../../src/core/protocol/configuration.js';
import type { ProbeResult } from '../../src/core/nodes/probe.js';
import type { NodePort } from '../../src/core/ports.js';
import { Membership } from '../../src/core/sequencer/lead/membership.js';
import { commonCluster } from '../../src/core/view/cluster-name.js';
import { clusterOf, configurationAmong, type Answer } from '../../src/core/view/membership.js';

const CLUSTER = 'c0ffee00beefcafe.1';
const OWN = '0.0 dedup-ms=86400000 dedup-items=1000000 max-block=1048576 | r1=m1@a:1 r2=m2@a:2 r3=m3@a:3';
const RIVAL = OWN.replace(' r3=m3@a:3', '');
const MOVED = OWN.replace('a:1', 'b:1');
const LATER = RIVAL.replace('0.0', '4.0');

/** The answers of r1, r2 and r3: the configuration that each shows, or null for no answer. */
function shown(...texts: (string | null)[]): ProbeResult {
  const replies = texts.map((config, i) =>
    config === null
      ? null
      : {
          outcome: 'accepted',
          incarnation: `m${i + 1}`,
          value: { cluster: CLUSTER, admission: 'admitted', incarnation: `m${i + 1}`, config },
        },
  );
  return { sentAt: 0, at: 0, replies, heardAt: [] } as unknown as ProbeResult;
}

test.each<[string, boolean, (string | null)[][], string]>([
  ['nothing known, one node shows one', false, [[OWN, null, null]], OWN],
  [
    'a later one, on one node',
    false,
    [
      [OWN, OWN, OWN],
      [LATER, OWN, OWN],
    ],
    LATER,
  ],
  ['nothing known, one node of three shows a rival', false, [[RIVAL, OWN, OWN]], OWN],
  [
    'known, and one node shows a rival',
    false,
    [
      [OWN, OWN, OWN],
      [RIVAL, null, null],
    ],
    OWN,
  ],
  [
    'a rival was the only one that was shown at first',
    false,
    [
      [RIVAL, null, null],
      [RIVAL, OWN, OWN],
    ],
    OWN,
  ],
  [
    'another spelling of an address is no rival',
    false,
    [
      [OWN, OWN, OWN],
      [MOVED, MOVED, MOVED],
    ],
    OWN,
  ],
  ['adopted, and no node shows any', true, [['', '', '']], OWN],
  [
    'adopted, and another adopter was sooner',
    true,
    [
      ['', '', ''],
      ['', RIVAL, ''],
    ],
    RIVAL,
  ],
  [
    'adopted, noted, and one node shows a rival',
    true,
    [
      ['', '', ''],
      [OWN, RIVAL, OWN],
    ],
    OWN,
  ],
])('membership: %s → the right one', (_, adopts, probes, expected) => {
  const nodes = ['r1', 'r2', 'r3'].map((id, i) => ({ id, url: `a:${i + 1}` }) as NodePort);
  const membership = new Membership({ nodes, cluster: CLUSTER, adopts });
  for (const texts of probes) membership.learn(shown(...texts));
  expect(membership.text).toBe(expected);
});

const RETIRED = `retired:${CLUSTER}`;

test.each<[string, string[], string | null]>([
  ['all are nodes of it', [CLUSTER, CLUSTER, CLUSTER], OWN],
  ['two of three were replaced, and still answer', [CLUSTER, RETIRED, RETIRED], OWN],
  ['all were replaced', [RETIRED, RETIRED, RETIRED], null],
])('a retired server is no cluster of its own: %s → the cluster, and what its own nodes know', (_, names, known) => {
  const answers = names.map((cluster, i) => ({
    id: `r${i + 1}`,
    reply: { outcome: 'accepted', incarnation: '', value: { cluster, admission: 'admitted', node: '', config: OWN } },
  })) as Answer[];
  expect([clusterOf(answers), commonCluster(answers.map(({ reply }) => reply))]).toEqual([CLUSTER, CLUSTER]);
  const configuration = configurationAmong(answers);
  expect(configuration === null ? null : configurationText(configuration)).toBe(known);
});
