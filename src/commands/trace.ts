import { Args, Flags } from '@oclif/core';
import { SeqCommand } from '../cli/command/base-command.js';
import { usageError } from '../cli/support/failure.js';
import { countFlag, heightFlag } from '../cli/support/flags.js';
import { CALLER_FLAGS } from '../cli/compose/caller.js';
import { askOptions } from '../cli/compose/target.js';
import type { Result } from '../cli/present/result.js';
import { traceResult } from '../cli/present/trace.js';
import { announcedAddresses } from '../cli/submit/addresses.js';
import { wantedItem } from '../cli/submit/wanted-item.js';
import { targetOf } from '../core/http-call.js';
import { traceItem } from '../core/report/trace.js';
import { inspectCluster } from '../core/view/inspect.js';
import { refuseNoAnswer } from '../core/view/no-answer.js';

/** One sequencer has this long to answer. */
const LIMIT_MS = 3000;

export default class Trace extends SeqCommand {
  static override summary = 'Show what happened to one item: when it came, where it went, in which block it is';
  static override description = [
    'Every sequencer is asked what it knows of the item: its store, and what came to its port lately. A place in the ' +
      'chain is known as long as keys are remembered. When the item came and when it was answered is known for the ' +
      'last thousands of items, until that sequencer is restarted.',
    'Exit code 0: the item is in the chain. 1: it is not, as far as all sequencers know. 3: nobody can tell.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> trace -c lab order-17',
    '<%= config.bin %> trace --height 1042 --index 3',
    '<%= config.bin %> trace --http http://10.0.0.5:7070 --http-token-file token order-17',
  ];
  static override args = {
    key: Args.string({ required: false, ignoreStdin: true, description: 'the key of the item' }),
  };
  static override flags = {
    height: heightFlag({ description: 'instead of the key: the block that holds the item' }),
    index: countFlag({ dependsOn: ['height'], description: 'which item of the block, from 0 (0)' }),
    http: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: 'URL',
      description: "a sequencer's HTTP address (repeat; default: those announced on the nodes)",
    }),
    ...CALLER_FLAGS,
  };
  protected readonly kind = 'trace';

  protected async perform(): Promise<Result> {
    const { flags, args } = await this.parse(Trace);
    const wanted = wantedItem(args.key, flags.height, flags.index);
    for (const url of flags.http ?? []) {
      const target = targetOf(url, '/');
      if (typeof target === 'string') throw usageError(`--http: ${target}`, ['--http http://HOST:PORT']);
    }
    const access = await this.callerAccess();
    const cluster = flags.http === undefined ? await this.cluster() : undefined;
    this.step('asking the nodes for the addresses of the sequencers');
    const announced =
      cluster && (await announcedAddresses(cluster.nodes, cluster.nodeTimeoutMs, cluster.settings.sequencers));
    if (cluster && announced?.urls.length === 0 && announced.nodesAnswered === 0)
      refuseNoAnswer(await inspectCluster(askOptions(cluster)));
    this.step('asking every sequencer about the item');
    const trace = await traceItem({
      urls: announced?.urls ?? flags.http ?? [],
      access,
      wanted,
      lane: cluster?.settings.lane ?? flags.lane ?? null,
      limitMs: LIMIT_MS,
      wall: Date.now,
      signal: this.signal,
    });
    return {
      ...traceResult(trace, wanted),
      ...(announced && cluster
        ? { meta: { nodesAsked: cluster.nodes.length, nodesAnswered: announced.nodesAnswered } }
        : {}),
    };
  }
}
