// Compares what the sequencers of one cluster say about themselves: node lists, timing, limits, clocks, disk space
// (docs/PROTOCOL.md sections 2 and 10). Pure. A sequencer that says nothing about a subject is not compared in it.
import { producerText } from '../protocol/producers.js';
import { newest } from '../protocol/configuration.js';
import type { Presence } from '../protocol/types.js';
import { duration } from '../duration.js';
import { wrongClockText } from '../nodes/node-clocks.js';
import { mib } from './doctor-memory.js';
import type { DoctorFinding, CheckedNode, Severity } from './doctor-finding.js';

const AHEAD_MS = 1000;
const DAY_MS = 86_400_000;
const MIB = 1024 * 1024;

interface Seen {
  one: Presence;
  aheadMs: number;
}

export function ofSequencers(nodes: readonly CheckedNode[]): DoctorFinding[] {
  const seen = new Map<string, Seen>();
  for (const { view } of nodes) {
    if (view.outcome !== 'accepted') continue;
    for (const one of view.value.sequencers) {
      const aheadMs = Number(one.extra['seenAtMs'] ?? NaN) - view.value.timeMs;
      const known = seen.get(one.id);
      // Takes the smallest difference over all nodes. One node whose clock is behind would make every sequencer seem
      // ahead.
      seen.set(one.id, {
        one,
        aheadMs: Math.min(known?.aheadMs ?? Infinity, Number.isFinite(aheadMs) ? aheadMs : Infinity),
      });
    }
  }
  const all = [...seen.values()];
  const differ = (severity: Severity, what: string, of: (one: Presence) => string, fix: string): DoctorFinding[] => {
    const groups = new Map<string, string[]>();
    for (const { one } of all) if (of(one) !== '') groups.set(of(one), [...(groups.get(of(one)) ?? []), one.id]);
    if (groups.size < 2) return [];
    return [
      {
        severity,
        check: 'sequencers',
        node: '',
        what: `${what}: ${[...groups].map(([value, ids]) => `${ids.join(', ')} with ${value}`).join('; ')}`,
        fix,
      },
    ];
  };
  const told =
    (words: [string, string, string?][]) =>
    ({ extra }: Presence): string =>
      words
        .flatMap(([name, key, unit]) => (extra[key] === undefined ? [] : [`${name} ${extra[key]}${unit ?? ''}`]))
        .join(', ');
  return [
    ...differ(
      'WARN',
      'the sequencers count different nodes',
      (one) => one.configDigest,
      'start every sequencer with the same --node list',
    ),
    ...differ(
      'WARN',
      'the sequencers differ in timing',
      told([
        ['ttl', 'ttlMs', ' ms'],
        ['block time', 'blockTimeMs', ' ms'],
        ['node timeout', 'nodeTimeoutMs', ' ms'],
      ]),
      'start every sequencer with the same --ttl, --block-time and --node-timeout',
    ),
    ...differ(
      'WARN',
      'the sequencers differ in their limits',
      told([
        ['largest block', 'maxBlockBytes', ' bytes'],
        ['retained', 'retainBlocks', ' blocks'],
        ['retained', 'retainBytes', ' bytes'],
      ]),
      'start every sequencer with the same --max-block-bytes, --retain-blocks and --retain-bytes',
    ),
    ...differ(
      'WARN',
      'the sequencers make blocks by different producers',
      ({ extra }) => (extra['producer'] === undefined ? '' : producerText(extra['producer'])),
      'start every sequencer of this lane with the same --producer',
    ),
    ...ofProducer(nodes),
    ...ofAddresses(all.map(({ one }) => one)),
    ...all.flatMap(({ one, aheadMs }) => ofClock(one, aheadMs)),
    ...all.flatMap(({ one }) => ofStore(one, all)),
  ];
}

/** Has the lane agreed on a producer? Only a lane of an older version, or one that nobody has led yet, has not. */
function ofProducer(nodes: readonly CheckedNode[]): DoctorFinding[] {
  const shown = nodes.flatMap(({ view }) => (view.outcome === 'accepted' ? [view.value.config] : []));
  const agreed = newest(...shown)?.settings.producer;
  if (agreed !== '') return [];
  const what = 'the lane has agreed on no producer: the next leader lets the nodes note its own';
  return [
    {
      severity: 'INFO',
      check: 'sequencers',
      node: '',
      what,
      fix: 'start a sequencer that has the producer of this lane',
    },
  ];
}

/** An address stands for one sequencer, and means the same from every host. */
function ofAddresses(all: readonly Presence[]): DoctorFinding[] {
  const fix = 'start each with --advertise http://HOST:PORT, an address that every sequencer reaches';
  const at = new Map<string, Presence[]>();
  for (const one of all) if (one.url !== '') at.set(one.url, [...(at.get(one.url) ?? []), one]);
  return [...at]
    .filter(([, those]) => those.length > 1)
    .map(([url, those]) => ({
      severity: 'CRIT' as const,
      check: 'sequencers',
      node: '',
      what: `${those.map(({ id }) => id).join(' and ')} announce one address, ${url}`,
      fix,
    }));
}

/** Uses the sequencer's own statement, which it measured. Without one, uses the time that its record states. */
function ofClock(one: Presence, aheadMs: number): DoctorFinding[] {
  const offMs = Number(one.extra['clockOffMs'] ?? NaN);
  const isAhead = aheadMs > AHEAD_MS && aheadMs < Infinity;
  if (!Number.isFinite(offMs) && !isAhead) return [];
  const what = Number.isFinite(offMs)
    ? wrongClockText(`the clock of sequencer ${one.id}`, offMs)
    : `the clock of sequencer ${one.id} is ${Math.round(aheadMs)} ms or more ahead of every node's`;
  return [
    {
      severity: 'WARN',
      check: 'clock',
      node: '',
      what: `${what}; its log and its records bear that time, its blocks do not`,
      fix: 'chronyc tracking (on that host)',
    },
  ];
}

/** The store grows with the chain and is never trimmed. */
function ofStore(one: Presence, all: readonly Seen[]): DoctorFinding[] {
  const free = Number(one.extra['storeFreeBytes'] ?? NaN);
  if (!Number.isFinite(free)) return [];
  const leader = all.find((other) => other.one.role === 'leader')?.one.extra ?? {};
  const [size, everyMs] = [Number(leader['blockBytes'] ?? NaN), Number(leader['blockEveryMs'] ?? NaN)];
  // Each block needs at least a page and an index entry.
  const lastsMs = everyMs > 0 && size >= 0 ? (free / (size + 512)) * everyMs : Infinity;
  const severity =
    free < 256 * MIB || lastsMs < 2 * 3_600_000 ? 'CRIT' : free < 1024 * MIB || lastsMs < 2 * DAY_MS ? 'WARN' : null;
  if (severity === null) return [];
  const lasts =
    lastsMs === Infinity || lastsMs > 365 * DAY_MS
      ? ''
      : `, enough for about ${duration(lastsMs)} at the pace of the newest blocks`;
  return [
    {
      severity,
      check: 'disk',
      node: '',
      what: `the disk of the store of ${one.id} has ${mib(free)} left${lasts}`,
      fix: 'give that disk room, or move the store (--store) while the sequencer is stopped',
    },
  ];
}
