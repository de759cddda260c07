// What the commands of `seq repair` share: the stores to ask, the flag that chooses between conflicting blocks, and the
// sequence plan, show, confirm, apply, verify.
import { Flags } from '@oclif/core';
import { hostname } from 'node:os';
import type { EvidenceOptions } from '../../core/repair/evidence.js';
import type { RepairWish } from '../../core/repair/plan.js';
import { applyRepair, type Repaired, type RepairOptions } from '../../core/repair/repair.js';
import { systemClock, systemRandom } from '../../core/nodes/system-clock.js';
import { openArchives } from '../compose/archives.js';
import { SeqCommand } from './base-command.js';
import { commandLine, confirmChange, type Change } from '../support/confirm.js';
import type { Cluster } from '../compose/open-cluster.js';
import { expectationOf } from '../support/expectation.js';
import { operatorOf } from '../support/operator.js';
import { planLines, repairedResult } from '../present/stream/repair.js';
import type { Result } from '../present/result.js';
import { asDuration } from '../config/settings.js';
import { askOptions } from '../compose/target.js';
import { CALLER_FLAGS } from '../compose/caller.js';

const HASH = /^[0-9a-fA-F]{8,64}$/;
const hashFlag = Flags.custom<string>({
  helpValue: 'HASH',
  parse: async (text) => {
    if (HASH.test(text)) return text.toLowerCase();
    const { usageError } = await import('../support/failure.js');
    throw usageError(`--choose-block: '${text.slice(0, 80)}' is not a block's hash`, [
      '8 to 64 hex digits, as the plan shows them',
    ]);
  },
});

export const REPAIR_FLAGS = {
  'choose-block': hashFlag({
    multiple: true,
    multipleNonGreedy: true,
    description: 'where conflicting blocks stand at a height: keep this one (repeat)',
  }),
  peer: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    helpValue: 'URL',
    description: 'a sequencer whose store is asked about conflicting blocks (those that announce themselves)',
  }),
  store: Flags.directory({ helpValue: 'DIR', description: 'a store on this machine that is asked, too' }),
  ...CALLER_FLAGS,
  'without-store': Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    helpValue: 'ID',
    description: 'go on although this store does not answer: you answer for what it holds (repeat)',
  }),
};

export interface RepairFlags {
  'choose-block'?: string[] | undefined;
  peer?: string[] | undefined;
  store?: string | undefined;
  'without-store'?: string[] | undefined;
  'dry-run'?: boolean | undefined;
  'from-bundle'?: string | undefined;
  quiet?: boolean | undefined;
}

export interface ApplyFlags extends RepairFlags {
  yes?: boolean | undefined;
  confirm?: string | undefined;
  reason?: string | undefined;
  'expect-leader'?: string | undefined;
  'expect-epoch'?: number | undefined;
}

type Against = NonNullable<Change['against']>;

const TIMEOUT_MS = 60_000;

export abstract class RepairCommand extends SeqCommand {
  static override deadline = false;

  protected evidenceOptions(
    cluster: Cluster,
    flags: RepairFlags,
  ): EvidenceOptions & RepairWish & { endProgress: () => void } {
    const progress = this.longReading('read');
    return {
      ...askOptions(cluster),
      lane: cluster.identity.lane,
      clock: systemClock,
      signal: this.signal,
      choose: flags['choose-block'] ?? [],
      without: flags['without-store'] ?? [],
      command: commandLine(this.id ?? '', this.argv) + (flags['dry-run'] === true ? ' --dry-run' : ''),
      progress: progress.at,
      endProgress: () => progress.end(),
      archives: (view) =>
        openArchives({
          store: flags.store,
          announced: flags['from-bundle'] === undefined ? 'all' : false,
          peers: flags.peer ?? [],
          access: () => this.callerAccess(),
          view,
          onClose: (close) => this.onClose(close),
        }),
    };
  }

  /** The options for carrying out a repair or undoing it. */
  protected async applyOptions(
    flags: ApplyFlags,
    against: Against | null,
  ): Promise<{ options: RepairOptions; command: string; endProgress: () => void; cluster: Cluster }> {
    const timeoutMs = (await this.setting('timeout', asDuration, TIMEOUT_MS)).value;
    const cluster = await this.cluster();
    const command = commandLine(this.id ?? '', this.argv);
    const { endProgress, ...evidence } = this.evidenceOptions(cluster, flags);
    const options: RepairOptions = {
      ...evidence,
      random: systemRandom,
      operator: operatorOf(this.id ?? '', this.argv),
      reason: flags.reason ?? '',
      host: hostname()
        .replace(/[^\w.-]/g, '-')
        .slice(0, 48),
      expect: expectationOf(flags),
      dryRun: Boolean(flags['dry-run']),
      timeoutMs,
      changing: (state, nodes) => this.changing(state, nodes),
      unchanged: () => this.unchanged(),
      step: (doing) => {
        endProgress();
        this.step(doing);
      },
      confirm: async (plan) => {
        endProgress();
        if (flags.confirm === undefined) for (const line of planLines(plan)) this.note(line);
        const chosen =
          plan.chosen.length === 0
            ? null
            : {
                rule: 'a block that stands against another one is chosen by a person',
                flag: 'choose-block',
                given: true,
              };
        const rule = against ?? chosen;
        await confirmChange(
          {
            level: 'decides-data',
            what: `repair ${[...new Set(plan.steps.map((step) => step.node))].join(', ')}`,
            effect: [],
            digest: plan.digest,
            ...(rule === null ? {} : { against: rule }),
          },
          {
            yes: false,
            confirm: flags.confirm,
            mayAsk: this.mayAsk,
            command,
            signal: this.signal,
            say: (text) => this.note(text),
          },
        );
      },
    };
    return { options, command, endProgress, cluster };
  }

  /** Plan, show, confirm, apply, verify. */
  protected async repair(flags: ApplyFlags): Promise<Result> {
    const { options, command, endProgress, cluster } = await this.applyOptions(flags, null);
    const repaired: Repaired = await applyRepair(options);
    endProgress();
    return {
      ...repairedResult(repaired, options.dryRun, options.target, command),
      meta: { nodesAnswered: cluster.nodes.length },
    };
  }
}
