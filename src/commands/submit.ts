import { Args, Flags } from '@oclif/core';
import { SeqCommand } from '../cli/command/base-command.js';
import { usageError } from '../cli/support/failure.js';
import { shellWord } from '../cli/support/meant.js';
import { withoutSecrets } from '../cli/support/node-url.js';
import { durationFlag } from '../cli/support/flags.js';
import type { Result } from '../cli/present/result.js';
import { submitResult } from '../cli/present/submit.js';
import { announcedAddresses } from '../cli/submit/addresses.js';
import { submitJob } from '../cli/submit/plan.js';
import { SubmitMeter } from '../cli/submit/progress.js';
import { submitItems } from '../core/submit/submit.js';
import { targetOf } from '../core/http-call.js';
import { CALLER_FLAGS, readCallerFiles } from '../cli/compose/caller.js';

export default class Submit extends SeqCommand {
  static override summary = 'Put every line of a file (or of stdin) into the chain, in order, each once';
  static override description = [
    'Each line is one item, without its newline; a last line without one counts, and so do empty ' +
      'lines. With --binary, items are frames of a 4-byte big-endian length. Lines are taken as they ' +
      'are: UTF-16, a byte-order mark and CR LF are warned of, and --text makes lines of UTF-8 of them.',
    "Keys are made from the file's content and the line number: the same file submitted again is " +
      'recognised and sequenced once; to sequence it twice on purpose, give another --key-prefix. A ' +
      'pipe has no identity: it is new each time, unless you name it with --key-prefix.',
    'Survives failovers: what has no receipt is sent again under the same keys. After an ' +
      'interruption --resume goes on behind the last receipt, also when the file has grown since.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> submit -c lab access.log',
    'journalctl -o cat | <%= config.bin %> submit',
    '<%= config.bin %> submit --resume access.log',
    '<%= config.bin %> submit --http http://10.0.0.5:7070 --http-token-file token --binary frames.bin',
  ];
  static override deadline = false;
  static override args = {
    file: Args.string({
      required: false,
      ignoreStdin: true,
      description: 'what to submit; stdin without it, or with -',
    }),
  };
  static override flags = {
    binary: Flags.boolean({ description: 'items are frames: 4-byte big-endian length, bytes' }),
    text: Flags.boolean({
      exclusive: ['binary'],
      description: 'make lines of UTF-8 of the input: from UTF-16, without byte-order mark, CR LF as LF',
    }),
    resume: Flags.boolean({ description: 'go on where an interrupted run ended' }),
    'key-prefix': Flags.string({
      helpValue: 'NAME',
      description: 'keys are NAME:1, NAME:2, … instead of being made from the content',
    }),
    'give-up': durationFlag({ description: 'end after this long without progress (60s)' }),
    http: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: 'URL',
      description: "a sequencer's HTTP address (repeat; default: those announced on the nodes)",
    }),
    ...CALLER_FLAGS,
  };
  protected readonly kind = 'submit';

  protected async perform(): Promise<Result> {
    const { flags, args } = await this.parse(Submit);
    for (const url of flags.http ?? []) {
      const target = targetOf(url, '/');
      if (typeof target === 'string') throw usageError(`--http: ${target}`, ['--http http://HOST:PORT']);
    }
    const warnings: string[] = [];
    const asDocument = ['json', 'ndjson', 'yaml'].includes(await this.format());
    const job = await submitJob({
      file: args.file,
      binary: flags.binary,
      text: flags.text,
      keyPrefix: flags['key-prefix'],
      resume: flags.resume,
      env: process.env,
      signal: this.signal,
      warning: (text) => warnings.push(text),
      caution: (text) => {
        if (asDocument) warnings.push(text);
        else this.note(`warning: ${text}`);
      },
    });
    const files = await this.callerFiles();
    const access = readCallerFiles(files);
    const cluster = flags.http === undefined ? await this.cluster() : undefined;
    if (job.source.path === '' && process.stdin.isTTY)
      this.note('reading items from the terminal, one a line; end with Ctrl-D');
    this.step('searching for the leader');
    let answering = 0;
    const meter = new SubmitMeter({
      terminal: Boolean(process.stderr.isTTY),
      quiet: flags.quiet,
      note: (text) => this.note(text),
      totalBytes: () => job.source.size,
    });
    try {
      const summary = await submitItems({
        urls: async () => {
          if (!cluster) return flags.http ?? [];
          const seen = await announcedAddresses(cluster.nodes, cluster.nodeTimeoutMs, cluster.settings.sequencers);
          answering = seen.nodesAnswered;
          return seen.urls;
        },
        wanted: cluster
          ? {
              lane: cluster.settings.lane,
              ...(cluster.identity.cluster === '' ? {} : { cluster: cluster.identity.cluster }),
            }
          : flags.lane === undefined
            ? {}
            : { lane: flags.lane },
        onlyThese: cluster === undefined,
        giveUpMs: flags['give-up'] ?? 60_000,
        signal: this.signal,
        plan: (status) => job.plan(status),
        onCheckpoint: (checkpoint) => job.checkpoint(checkpoint),
        onProgress: (progress) => {
          void meter.show(progress);
        },
        onSending: () => this.changing(),
        ...access,
        readProofs: () => readCallerFiles(files),
      });
      return {
        ...submitResult(summary, job.keyPrefix, warnings, (from, to) => readFrom(from, to, flags)),
        ...(cluster ? { meta: { nodesAnswered: answering } } : {}),
      };
    } finally {
      meter.stop();
    }
  }
}

/** A sequencer that was named by its address need not belong to any cluster that this machine knows. */
function readFrom(
  from: number,
  to: number,
  flags: Partial<Record<'http-token-file' | 'http-ca' | 'http-cert' | 'http-key', string>> & { http?: string[] },
): string {
  const url = flags.http?.[0];
  if (url === undefined) return `seq stream tail --items --from ${from}`;
  const token = flags['http-token-file'];
  const tls = [
    ['--cacert', flags['http-ca']] as const,
    ['--cert', flags['http-cert']] as const,
    ['--key', flags['http-key']] as const,
  ].flatMap(([option, file]) => (file === undefined ? [] : [`${option} ${shellWord(file)}`]));
  const header = token === undefined ? [] : [`-H "Authorization: Bearer $(head -1 ${shellWord(token)})"`];
  const blocks = `${withoutSecrets(url).replace(/\/+$/, '')}/v1/blocks?from=${from}&to=${to}`;
  return ['curl -fsS', ...header, ...tls, shellWord(blocks)].join(' ');
}
