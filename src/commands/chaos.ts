import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Flags } from '@oclif/core';
import { SeqCommand } from '../cli/command/base-command.js';
import { chaosOutside } from '../cli/compose/chaos.js';
import { usageError } from '../cli/support/failure.js';
import { countFlag, durationFlag, positiveFlag } from '../cli/support/flags.js';
import { chaosResult } from '../cli/present/chaos.js';
import type { Result } from '../cli/present/result.js';
import { EXIT } from '../core/errors.js';
import { FAULTS } from '../lab/chaos/faults.js';
import { runChaos } from '../lab/chaos/run.js';

const NAMES = FAULTS.map(({ name }) => name);

export default class Chaos extends SeqCommand {
  static override summary =
    'Break a cluster of real processes in every way, from a seed, and prove that nothing was lost, ' +
    'doubled or reordered';
  static override description = [
    'Starts Redis servers and sequencers of its own in a temporary directory, with a proxy on every ' +
      'link; never touches another lab or cluster.',
    'Clients submit and readers read all the while. Faults come in rounds; after each everything is ' +
      'healed and must come together within a bound.',
    'In the end all that anybody was told is held against the chain: one block per height, items ' +
      'exactly once where their receipts say and in order, epochs rising, nodes identical, one ' +
      'append-only log.',
    'A seed repeats the faults, not the timing of the machine. On a busy machine give a longer ' +
      '--ttl; --node-timeout is two fifths of it unless given.',
    '',
    'Redis servers lose their memory one after the other: a quorum always keeps it, and a server ' +
      'counts again only once it was re-admitted. More at once is outside what the protocol promises ' +
      '(see seq cluster recover).',
    '',
    'Faults:',
    ...FAULTS.map(({ name, help }) => `  ${name.padEnd(16)} ${help}`),
  ].join('\n');
  static override examples = [
    '<%= config.bin %> chaos',
    '<%= config.bin %> chaos --duration 10m --nodes 5 --sequencers 3',
    '<%= config.bin %> chaos --seed 4711 --faults kill-sequencer,wipe-node --keep',
  ];
  static override flags = {
    seed: countFlag({ description: 'repeats the faults of an earlier run (default: a new one)' }),
    duration: durationFlag({ description: 'how long faults are injected (1m)' }),
    faults: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: 'A,B',
      description: 'only these; all of them by default; none: only clients and readers',
    }),
    nodes: positiveFlag({ description: 'Redis servers (3)' }),
    sequencers: positiveFlag({ description: 'sequencers (3)' }),
    ttl: durationFlag({ description: 'lease (500ms)' }),
    keep: Flags.boolean({ description: 'keep logs, history and stores also when all went well' }),
  };
  static override deadline = false;
  static override graceMs = 15_000;
  protected readonly kind = 'chaos';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(Chaos);
    const named = (['context', 'node', 'on', 'lane'] as const).find((flag) => flags[flag] !== undefined);
    if (named !== undefined)
      throw usageError(`--${named} has no meaning here: chaos runs on a cluster of its own, never on yours`, [
        'seq chaos',
      ]);
    const faults = faultsOf(flags.faults);
    const seed = flags.seed ?? Math.floor(Math.random() * 2 ** 32);
    const ttlMs = flags.ttl ?? 500;
    const directory = mkdtempSync(join(tmpdir(), 'seq-chaos-'));
    this.step('running the chaos');
    let kept = true;
    try {
      const report = await runChaos({
        directory,
        seed,
        faults,
        ttlMs,
        durationMs: flags.duration ?? 60_000,
        nodes: flags.nodes ?? 3,
        sequencers: flags.sequencers ?? 3,
        nodeTimeoutMs: flags['node-timeout'] ?? Math.floor(ttlMs * 0.4),
        signal: this.signal,
        report: (line) => this.note(line),
        ...chaosOutside(),
      });
      kept = report.anomalies.length > 0 || flags.keep;
      return { ...chaosResult(report, kept ? directory : null), exit: report.anomalies.length > 0 ? EXIT.no : EXIT.ok };
    } catch (error) {
      kept = flags.keep || !this.signal.aborted;
      if (kept) this.note(`seed ${seed}; what there is, is in ${directory}`);
      throw error;
    } finally {
      if (!kept) rmSync(directory, { recursive: true, force: true });
    }
  }
}

function faultsOf(given: readonly string[] | undefined): string[] {
  if (given === undefined) return NAMES;
  const names = given
    .flatMap((text) => text.split(','))
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'none');
  const unknown = names.filter((name) => !NAMES.includes(name));
  if (unknown.length > 0)
    throw usageError(`--faults: there is no fault ${unknown.join(', ')}`, [`choose from: ${NAMES.join(', ')}, none`]);
  return [...new Set(names)];
}
