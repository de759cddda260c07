import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { usageError } from '../../cli/support/failure.js';
import { BUNDLE_FLAG, heightFlag, positiveFlag } from '../../cli/support/flags.js';
import type { Result } from '../../cli/present/result.js';
import { parseCount } from '../../cli/support/units.js';
import { openArchives } from '../../cli/compose/archives.js';
import { TailWriter } from '../../cli/stream/tail-writer.js';
import { targetFlags } from '../../cli/compose/target.js';
import { tailBlocks } from '../../core/stream/tail.js';
import { CALLER_FLAGS } from '../../cli/compose/caller.js';

export default class StreamTail extends SeqCommand {
  static override summary = 'Print committed blocks, or their items, in order';
  static override description = [
    'Read from the nodes by quorum: nothing is printed before it is committed. Below what the nodes ' +
      'retain, from --store, --peer or the feeds that running sequencers announce, once their hash ' +
      'chain is seen to end in what the nodes prove.',
    'With --items a line is height, index and item, tab-separated: printable UTF-8 as it is, ' +
      'anything else as base64:…. --raw prints the bytes of each item and a line end. Of an exec block ' +
      "the child's own data is the one item.",
    'There is no --timeout unless you give one: it may be piped into a pager. Each read is limited all the same.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> stream tail -c lab --follow',
    '<%= config.bin %> stream tail --items --from 1 -o plain',
    '<%= config.bin %> stream tail --raw --from 1 --to 100 > items.txt',
  ];
  static override deadline = false;
  static override flags = {
    ...BUNDLE_FLAG,
    from: Flags.string({ helpValue: 'HEIGHT|floor|head', default: 'floor', description: 'where to start' }),
    to: heightFlag({ description: 'end after this height' }),
    limit: positiveFlag({ description: 'end after N lines' }),
    follow: Flags.boolean({ char: 'f', description: 'go on with what is committed from now on' }),
    items: Flags.boolean({ description: 'the items of the blocks' }),
    raw: Flags.boolean({ description: 'the bytes of the items alone, each with a line end' }),
    store: Flags.string({ helpValue: 'DIR', description: "a sequencer's store, for what the nodes no longer keep" }),
    peer: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: 'URL',
      description: "a sequencer's HTTP address, for the same (default: the announced ones)",
    }),
    ...CALLER_FLAGS,
  };
  protected readonly kind = 'stream.tail';

  protected async perform(): Promise<Result | null> {
    const { flags } = await this.parse(StreamTail);
    const from =
      flags.from === 'floor' || flags.from === 'head'
        ? flags.from
        : parseCount(flags.from, '--from', 0, 'floor, head or ');
    const format = await this.format();
    const asDocument = !flags.raw && (format === 'json' || format === 'yaml');
    if (flags.follow && asDocument)
      throw usageError(`-o ${format} is one document and never ends with --follow`, ['-o ndjson']);
    if (typeof from === 'number' && flags.to !== undefined && flags.to < from)
      throw usageError(`--to ${flags.to} is below --from ${from}`, ['a chain is read upwards']);
    const cluster = await this.cluster();
    const target = targetFlags(cluster.settings, cluster.nodes);
    const writer = new TailWriter({
      write: (text) => this.write(text),
      format,
      items: flags.items || flags.raw,
      raw: flags.raw,
      fields: flags.fields ?? [],
      quiet: flags.quiet,
      limit: flags.limit ?? Infinity,
    });
    this.step('reading committed blocks');
    const blocks = tailBlocks({
      nodes: cluster.nodes,
      limitMs: cluster.nodeTimeoutMs,
      clock: cluster.clock,
      signal: this.signal,
      from,
      to: flags.to,
      follow: flags.follow,
      target,
      open: cluster.openMember,
      onWait: (reason) => this.note(`waiting: ${reason}`),
      archives: (view) =>
        openArchives({
          store: flags.store,
          announced: flags['from-bundle'] === undefined,
          peers: flags.peer ?? [],
          access: () => this.callerAccess(),
          view,
          onClose: (close) => this.onClose(close),
        }),
    });
    for await (const block of blocks) {
      await writer.take(block);
      if (flags.follow && !asDocument) await writer.flush();
      if (writer.full) break;
    }
    await writer.flush();
    this.signal.throwIfAborted();
    if (!asDocument) return null;
    return { data: flags.items ? { items: writer.collected } : { blocks: writer.collected } };
  }
}
