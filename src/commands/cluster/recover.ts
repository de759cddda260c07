import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { commandLine } from '../../cli/support/confirm.js';
import { ACT_FLAGS } from '../../cli/support/flags.js';
import { operatorOf } from '../../cli/support/operator.js';
import { notNeededResult, recoverResult } from '../../cli/present/cluster/recover.js';
import type { Result } from '../../cli/present/result.js';
import { probeForRecovery, recoverAsPlanned, rejoin } from '../../cli/compose/recovery.js';
import { askOptions, startAgain, targetFlags } from '../../cli/compose/target.js';
import { inspectCluster } from '../../core/view/inspect.js';

export default class ClusterRecover extends SeqCommand {
  static override summary = 'Give the cluster a new generation when fewer than a quorum of nodes are admitted';
  static override description = [
    'After a power cut, or when too many nodes were restarted at once. Gathers what every node and ' +
      "every reachable sequencer's store holds, shows the longest provable chain and what may be lost, " +
      "and asks for the plan's digest.",
    'Where everything shown explains itself one confirmation is enough; otherwise ' +
      '--accept-possible-loss is needed as well. Broken off anywhere, the same command goes on. ' +
      'Sequencers that run have to be started again.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> cluster recover -c prod --dry-run',
    '<%= config.bin %> cluster recover -c prod --peer http://10.0.0.4:7070 --confirm 1a2b3c4d',
  ];
  static override deadline = false;
  static override flags = {
    ...ACT_FLAGS,
    peer: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: 'URL',
      description: 'a sequencer whose store is asked too, besides those in presence records (repeat)',
    }),
    store: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: 'DIR',
      description: "a sequencer's store on this machine, also of one that does not run (repeat)",
    }),
    'accept-possible-loss': Flags.boolean({
      helpGroup: 'CHANGE',
      description: 'go on although the evidence does not rule out that an acknowledged block is lost',
    }),
  };
  protected readonly kind = 'cluster.recover';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(ClusterRecover);
    const found = await this.cluster();
    const target = targetFlags(found.settings, found.nodes);
    const command = commandLine(this.id ?? '', this.argv);
    const probed = await probeForRecovery({
      found,
      peers: [...new Set([...(flags.peer ?? []), ...found.settings.sequencers])],
      stores: (flags.store ?? []).map((dir) => ({ id: dir, dir })),
      command,
      signal: this.signal,
      insteadOf: (why) =>
        (why === 'NO_QUORUM' || why === 'NODE_MOVED' ? [] : [`${command} --store DIR`]).concat(
          `seq ${why === 'NOT_INITIALISED' ? 'cluster init' : 'status'} ${target}`.trim(),
        ),
      onClose: (close) => this.onClose(close),
      step: (doing) => this.step(doing),
      changed: (nodes) => this.changing('some', nodes),
    });
    const { decision } = probed;
    const status = `seq status ${target}`.trim();
    const seen = (cluster: string) => inspectCluster({ ...askOptions(found), expectedCluster: cluster });
    if (decision.outcome === 'not-needed') {
      const view = await seen(decision.cluster);
      if (flags['dry-run'] || decision.rejoin.length === 0) return notNeededResult(decision, [], view, status);
      this.changing();
      return notNeededResult(decision, await rejoin(probed), view, status);
    }
    const { plan } = decision;
    const loss = plan.doubts.length > 0 && !flags['accept-possible-loss'] ? ' --accept-possible-loss' : '';
    if (flags['dry-run']) {
      const confirm = `${command}${loss} --confirm ${plan.digest.slice(0, 8)}`;
      // Nodes that may come back come first: a recovery without them may lose what only they hold.
      const first = plan.nodes.some(({ action }) => action === 'left-out')
        ? (await seen(found.identity.cluster)).next
        : [];
      return recoverResult(plan, 'planned', [...first.filter((line) => !line.includes('cluster recover')), confirm]);
    }
    const warning = await recoverAsPlanned(plan, probed, {
      yes: false,
      confirm: flags.confirm,
      acceptLoss: Boolean(flags['accept-possible-loss']),
      reason: flags.reason ?? '',
      mayAsk: this.mayAsk,
      command,
      signal: this.signal,
      say: (text) => this.note(text),
      operator: operatorOf(this.id ?? '', this.argv),
      changing: () => this.changing(),
    });
    return recoverResult(plan, 'recovered', [startAgain(found.settings), status], warning === '' ? [] : [warning]);
  }
}
