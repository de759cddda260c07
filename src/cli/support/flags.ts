// The flags that commands share, in groups: cluster and output flags on every command, READ on commands that only read,
// ACT on commands that change something. None has an oclif default or `env`. settings.ts resolves flag → SEQ_* →
// context → config file → default, and keeps the origin.
import { Flags } from '@oclif/core';
import { parseCount, parseDuration, parseSize } from './units.js';

const OUTPUT_FORMATS = ['table', 'wide', 'plain', 'json', 'ndjson', 'yaml', 'csv'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number] | 'nagios' | 'prometheus';

/** ms. `label` names the flag in the error. */
export const durationFlag = Flags.custom<number>({
  helpValue: 'DURATION',
  parse: async (text, _context, options) => parseDuration(text, `--${options.name}`),
});
/** bytes. */
export const sizeFlag = Flags.custom<number>({
  helpValue: 'SIZE',
  parse: async (text, _context, options) => parseSize(text, `--${options.name}`),
});
/** A whole number from 0. */
export const countFlag = Flags.custom<number>({
  helpValue: 'N',
  parse: async (text, _context, options) => parseCount(text, `--${options.name}`),
});
/** A whole number from 1. */
export const positiveFlag = Flags.custom<number>({
  helpValue: 'N',
  parse: async (text, _context, options) => parseCount(text, `--${options.name}`, 1),
});
export const heightFlag = Flags.custom<number>({
  helpValue: 'HEIGHT',
  parse: async (text, _context, options) => parseCount(text, `--${options.name}`),
});
export const epochFlag = Flags.custom<number>({
  helpValue: 'EPOCH',
  parse: async (text, _context, options) => parseCount(text, `--${options.name}`),
});

/** `a,b` and repeated flags → a flat list without empties. */
const listFlag = Flags.custom<string[]>({
  parse: async (text) =>
    text
      .split(',')
      .map((part) => part.trim())
      .filter(Boolean),
});

/** `-o` for a command with additional formats (`check`: nagios, prometheus). */
export function outputFlag(extra: readonly OutputFormat[] = []) {
  return Flags.string({
    char: 'o',
    helpGroup: 'OUTPUT',
    helpValue: 'FORMAT',
    options: [...OUTPUT_FORMATS, ...extra],
    description: `${[...OUTPUT_FORMATS, ...extra].join('|')} (a terminal gets table, a pipe plain)`,
  });
}

const DIALECT = {
  dialect: {
    helpGroup: 'FUEL DIALECT',
    helpValue: 'seq|fuel',
    options: ['seq', 'fuel'],
    description: 'whose keys are read: fuel is read-only (docs/FUEL.md)',
  },
  leaseKey: {
    helpGroup: 'FUEL DIALECT',
    helpValue: 'KEY',
    description: 'with --dialect fuel: the key of its lock, e.g. poa:leader:lock',
  },
  quorumBudget: {
    helpGroup: 'FUEL DIALECT',
    description: 'with --dialect fuel: nodes asked for beyond a majority (0)',
  },
};
/** Shown by commands that can read the streams of the other dialect. */
export const FUEL_FLAGS = {
  dialect: Flags.string(DIALECT.dialect),
  'lease-key': Flags.string(DIALECT.leaseKey),
  'quorum-budget': countFlag(DIALECT.quorumBudget),
};

export const GLOBAL_FLAGS = {
  context: Flags.string({
    char: 'c',
    helpGroup: 'CLUSTER',
    helpValue: 'NAME',
    description: 'context of the config file',
  }),
  node: Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    helpGroup: 'CLUSTER',
    helpValue: '[ID=]URL',
    description: 'a Redis node of the cluster (repeat)',
  }),
  on: listFlag({ helpGroup: 'CLUSTER', helpValue: 'ID[,ID]', description: 'only these nodes' }),
  lane: Flags.string({
    helpGroup: 'CLUSTER',
    helpValue: 'LANE',
    description: 'which chain of the cluster (a lane is an independent chain on the same servers)',
  }),
  'node-timeout': durationFlag({ helpGroup: 'CLUSTER', description: 'limit of one call to one node (100ms)' }),
  timeout: durationFlag({ helpGroup: 'CLUSTER', description: 'limit of the whole command (10s)' }),
  output: outputFlag(),
  json: Flags.boolean({ helpGroup: 'OUTPUT', exclusive: ['output'], description: 'same as -o json' }),
  fields: listFlag({ helpGroup: 'OUTPUT', helpValue: 'A,B', description: 'only these fields' }),
  quiet: Flags.boolean({
    char: 'q',
    helpGroup: 'OUTPUT',
    exclusive: ['verbose', 'trace'],
    description: 'the answer alone',
  }),
  verbose: Flags.boolean({ char: 'v', helpGroup: 'OUTPUT', description: 'say on stderr what is being done' }),
  trace: Flags.boolean({ helpGroup: 'OUTPUT', description: 'every step, and stack traces' }),
  'no-color': Flags.boolean({ helpGroup: 'OUTPUT', description: 'no colour' }),
  'no-input': Flags.boolean({ helpGroup: 'OUTPUT', description: 'never ask' }),
  // Defined on every command, so that one that cannot take them says why instead of reporting an unknown flag.
  dialect: Flags.string({ ...DIALECT.dialect, hidden: true }),
  'lease-key': Flags.string({ ...DIALECT.leaseKey, hidden: true }),
  'quorum-budget': countFlag({ ...DIALECT.quorumBudget, hidden: true }),
};

/** A part of the chain: `--from` and `--to`. */
export const RANGE_FLAGS = {
  from: heightFlag({ description: 'the lowest height' }),
  to: heightFlag({ description: 'the highest height' }),
};

/** For commands that only read: all of them can also answer from a file that `seq stream export` wrote. */
export const BUNDLE_FLAG = {
  'from-bundle': Flags.string({
    helpGroup: 'CLUSTER',
    helpValue: 'FILE',
    exclusive: ['context', 'node', 'lane', 'watch', 'follow', 'store', 'peer', 'dialect'],
    description: 'answer from this bundle (seq stream export) instead of the nodes',
  }),
};

/** Commands that only read: `static override flags = { ...READ_FLAGS, … }`. */
export const WATCH_FLAGS = {
  watch: Flags.boolean({ helpGroup: 'WATCH', description: 'repeat until stopped' }),
  interval: durationFlag({ helpGroup: 'WATCH', dependsOn: ['watch'], description: 'pause between two rounds (1s)' }),
  count: positiveFlag({ helpGroup: 'WATCH', dependsOn: ['watch'], description: 'stop after N rounds' }),
};
export const READ_FLAGS = { ...BUNDLE_FLAG, ...WATCH_FLAGS };

/** Commands that change something: `static override flags = { ...ACT_FLAGS, … }`. */
export const ACT_FLAGS = {
  'dry-run': Flags.boolean({ char: 'n', helpGroup: 'CHANGE', description: 'everything up to the first write' }),
  yes: Flags.boolean({ char: 'y', helpGroup: 'CHANGE', description: 'go ahead without asking (disruptive changes)' }),
  confirm: Flags.string({
    helpGroup: 'CHANGE',
    helpValue: 'DIGEST',
    description: 'go ahead with the plan of this digest',
  }),
  reason: Flags.string({ helpGroup: 'CHANGE', helpValue: 'TEXT', description: 'why, for the audit record' }),
  'expect-leader': Flags.string({ helpGroup: 'CHANGE', helpValue: 'ID', description: 'only if this sequencer leads' }),
  'expect-epoch': epochFlag({ helpGroup: 'CHANGE', description: 'only at this epoch' }),
};
