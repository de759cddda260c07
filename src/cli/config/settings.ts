// One rule for every setting: flag → SEQ_* → context → config file → default. The origin is kept, so that `config show
// --origin` can show it.
import { SeqError } from '../../core/errors.js';
import type { ConfigFile, ContextEntry } from './config-types.js';
import { badValue, parseCount, parseDuration, parseSize } from '../support/units.js';

type Origin = 'flag' | 'environment' | 'context' | 'config file' | 'default';

export interface Setting<T> {
  value: T;
  origin: Origin;
  /** The exact origin: `--timeout`, `SEQ_TIMEOUT`, `context lab`, a path. */
  from: string;
}

export interface Sources {
  flags: Record<string, unknown>;
  env: NodeJS.ProcessEnv;
  config: ConfigFile | null;
  configPath: string;
  context: { name: string; entry: ContextEntry } | null;
}

/** `node-timeout` → `SEQ_NODE_TIMEOUT`. */
function envName(flag: string): string {
  return `SEQ_${flag.toUpperCase().replaceAll('-', '_')}`;
}

/** `node-timeout` → `nodeTimeout`, the spelling in the config file. */
function fileName(flag: string): string {
  return flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Resolves one setting. `parse` reads the text of the environment and the file; flags are already parsed. An empty
 * variable counts as unset.
 */
export function setting<T>(
  sources: Sources,
  flag: string,
  parse: (text: string, what: string) => T,
  fallback: T,
): Setting<T> {
  const given = sources.flags[flag];
  if (given !== undefined && given !== false) return { value: given as T, origin: 'flag', from: `--${flag}` };
  const variable = envName(flag);
  const text = sources.env[variable];
  if (text !== undefined && text !== '') return { value: parse(text, variable), origin: 'environment', from: variable };
  const name = fileName(flag);
  const inContext = sources.context?.entry.settings?.[name];
  if (sources.context && inContext !== undefined) {
    return {
      value: fromFile(parse, inContext, `context ${sources.context.name}: ${name}`),
      origin: 'context',
      from: `context ${sources.context.name}`,
    };
  }
  const inFile = sources.config?.settings?.[name];
  if (inFile !== undefined)
    return {
      value: fromFile(parse, inFile, `${sources.configPath}: ${name}`),
      origin: 'config file',
      from: sources.configPath,
    };
  return { value: fallback, origin: 'default', from: 'default' };
}

/** A bad value in a file is bad configuration (78), not bad usage (64). */
function fromFile<T>(parse: (text: string, what: string) => T, value: unknown, what: string): T {
  try {
    return parse(String(value), what);
  } catch (error) {
    if (!(error instanceof SeqError)) throw error;
    throw new SeqError({
      code: 'BAD_CONFIG',
      exit: 78,
      message: error.message,
      why: 'the config file holds a value that cannot be read',
      changed: 'nothing',
      next: ['seq config validate', ...error.next],
    });
  }
}

export const asText = (text: string): string => text;
export const asDuration = parseDuration;
export const asSize = parseSize;
export const asCount = (text: string, what: string): number => parseCount(text, what);
export const asList = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);
export const asSwitch = (text: string, what: string): boolean => {
  if (/^(1|true|yes|on)$/i.test(text)) return true;
  if (/^(0|false|no|off)$/i.test(text)) return false;
  throw badValue(what, text, 'true or false');
};
export function asChoice<T extends string>(choices: readonly T[]): (text: string, what: string) => T {
  return (text, what) => {
    if ((choices as readonly string[]).includes(text)) return text as T;
    throw badValue(what, text, `one of ${choices.join(', ')}`);
  };
}

/** Which program's keys a cluster's nodes hold. */
export const asDialect = asChoice(['seq', 'fuel'] as const);

/** A lane's name becomes part of every key. '' is the default lane. */
export const asLane = (text: string, what: string): string => {
  if (text !== '' && !/^[a-z0-9-]{1,32}$/.test(text))
    throw badValue(what, text, 'a lane name: 1 to 32 of a-z, 0-9 and -');
  return text;
};

/**
 * Settings in the file's `settings` and in a context's, each with its parser. Command flags of the same name follow the
 * same rule.
 */
export const SETTING_READERS: Record<string, (text: string, what: string) => unknown> = {
  output: asChoice(['table', 'wide', 'plain', 'json', 'ndjson', 'yaml', 'csv'] as const),
  timeout: asDuration,
  nodeTimeout: asDuration,
  interval: asDuration,
  noColor: asSwitch,
  noInput: asSwitch,
  ttl: asDuration,
  blockTime: asDuration,
  maxBlockBytes: asSize,
  retainBlocks: asCount,
  retainBytes: asSize,
  dialect: asDialect,
  leaseKey: asText,
  quorumBudget: asCount,
  eager: asSwitch,
  store: asText,
  http: asText,
  advertise: asText,
  httpTokenFile: asText,
  httpCa: asText,
  httpCert: asText,
  httpKey: asText,
  httpClientCa: asText,
  admin: asText,
  peer: asList,
  priority: asCount,
  logLevel: asText,
  id: asText,
};
