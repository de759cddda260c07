import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/base-command.js';
import { commandLine, confirmChange } from '../../cli/confirm.js';
import { commonCluster } from '../../core/engine/cluster-name.js';
import { ACT_FLAGS } from '../../cli/flags.js';
import { operatorOf } from '../../cli/operator.js';
import { notNeededResult, planLines, recoverResult } from '../../cli/present/recover.js';
import type { Result } from '../../cli/present/result.js';
import { targetFlags } from '../../cli/target.js';
import { genesisHash } from '../../core/chain/block.js';
import { recordChange } from '../../core/engine/audit-record.js';
import { carryOut, handToLeader, type RecoverOptions } from '../../core/engine/recover.js';
import { gather } from '../../core/engine/recover-gather.js';
import { decideRecovery, familyOf } from '../../core/engine/recover-plan.js';
import { systemClock, systemRandom } from '../../core/engine/system.js';
import { EXIT, SeqError } from '../../core/errors.js';

export default class ClusterRecover extends SeqCommand {
  static override summary = 'Give the cluster a new generation when fewer than a quorum of nodes are admitted';
  static override description = [
    'After a power cut, or when too many nodes were restarted at once. Gathers what every node and every reachable sequencer\'s store holds, shows the longest provable chain and what may be lost, and asks for the plan\'s digest.',
    'Where everything shown explains itself one confirmation is enough; otherwise --accept-possible-loss is needed as well. Broken off anywhere, the same command goes on. Sequencers that run have to be started again.',
  ].join('\n');
  static override examples = ['<%= config.bin %> cluster recover -c prod --dry-run', '<%= config.bin %> cluster recover -c prod --peer http://10.0.0.4:7070 --confirm 1a2b3c4d'];
  static override deadline = false;
  static override flags = {
    ...ACT_FLAGS,
    peer: Flags.string({ multiple: true, multipleNonGreedy: true, helpValue: 'URL', description: 'a sequencer whose store is asked too, besides those in presence records (repeat)' }),
    'accept-possible-loss': Flags.boolean({ helpGroup: 'CHANGE', description: 'go on although the evidence does not rule out that an acknowledged block is lost' }),
  };
  protected readonly kind = 'cluster.recover';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(ClusterRecover);
    const found = await this.cluster();
    const target = targetFlags(found.settings, found.nodes);
    const command = commandLine(this.id ?? '', this.argv);
    const open = async (cluster: string) => {
      const nodes = await found.reopen(cluster);
      this.onClose(async () => { await Promise.all(nodes.map((node) => node.close())); });
      return nodes;
    };
    const limitMs = Math.max(found.nodeTimeoutMs, 500);
    const readers = await open('');
    this.step('gathering what every node and store holds');
    // The generation that the nodes are in, whatever the context was written for.
    const shown = commonCluster(await Promise.all(readers.map((node) => node.call({ script: 'inspect' }, limitMs))));
    const now = found.identity.cluster === '' || familyOf(shown) === familyOf(found.identity.cluster) ? shown : found.identity.cluster;
    const evidence = await gather({ nodes: await open(now), readers, limitMs, clock: systemClock, peers: [...new Set([...(flags.peer ?? []), ...found.settings.sequencers])], signal: this.signal });
    const decision = decideRecovery(evidence, now);
    if (decision.outcome === 'impossible') {
      throw new SeqError({
        code: decision.code, exit: decision.code === 'NO_QUORUM' ? EXIT.noQuorum : EXIT.precondition, message: decision.why, why: 'a recovery rests on what a quorum of nodes shows', changed: 'nothing',
        next: decision.code === 'NOT_INITIALISED' ? [`seq cluster init ${target}`.trim()] : [`seq status ${target}`.trim()], retryable: decision.code === 'NO_QUORUM',
      });
    }
    const cluster = decision.outcome === 'plan' ? decision.plan.cluster : decision.cluster;
    const options: RecoverOptions = {
      nodes: await open(cluster), readers, limitMs, clock: systemClock, random: systemRandom, command,
      step: (doing) => this.step(doing), changed: (nodes) => this.changing('some', nodes),
    };
    const status = `seq status ${target}`.trim();
    if (decision.outcome === 'not-needed') {
      if (flags['dry-run'] || decision.rejoin.length === 0) return notNeededResult(decision, [], [status]);
      this.changing();
      return notNeededResult(decision, await handToLeader(decision, genesisHash(familyOf(cluster), found.identity.lane), options), [status]);
    }
    const { plan } = decision;
    const loss = plan.doubts.length > 0 && !flags['accept-possible-loss'] ? ' --accept-possible-loss' : '';
    const confirmed = `${command}${loss} --confirm ${plan.digest.slice(0, 8)}`;
    if (flags['dry-run']) return recoverResult(plan, 'planned', [confirmed]);
    const lines = planLines(plan);
    if (flags.confirm === undefined) for (const line of lines) this.note(line);
    await confirmChange({
      level: 'decides-data', what: `recover the cluster as ${plan.cluster}`, effect: [], digest: plan.digest,
      ...(plan.doubts.length === 0 ? {} : { against: { rule: `an acknowledged block may be lost: ${plan.doubts.join('; ')}`, flag: 'accept-possible-loss', given: Boolean(flags['accept-possible-loss']) } }),
    }, { yes: false, confirm: flags.confirm, mayAsk: this.mayAsk, command, signal: this.signal, say: (text) => this.note(text) });
    this.changing();
    await carryOut(plan, evidence, options);
    const warning = await recordChange(options.nodes, {
      what: 'cluster recover', reason: flags.reason ?? '', before: `${now}: ${plan.nodes.map((node) => `${node.id} ${node.finding}`).join('; ')}`.slice(0, 2000),
      after: `${plan.cluster}, head ${plan.top.height} ${plan.top.hash}`, outcome: 'recovered', plan: plan.digest,
    }, operatorOf(this.id ?? '', this.argv), systemClock, limitMs);
    return recoverResult(plan, 'recovered', ['start the sequencers again (seq run …)', status], warning === '' ? [] : [warning]);
  }
}
