// The form of the config file, checked with zod. Loaded only when there is a file to read, because yaml and zod cost
// start-up time.
import { parseDocument, stringify } from './yaml.js';
import { z } from 'zod';
import { SeqError } from '../../core/errors.js';
import { badConfig } from './config-errors.js';
import type { ConfigFile } from './config-types.js';
import { SETTING_READERS } from './settings.js';
import { checkUrl } from '../support/node-url.js';

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const LANE = /^([a-z0-9-]{1,32})?$/;

const secrets = {
  passwordFile: z.string().min(1).optional(),
  passwordCommand: z.string().min(1).optional(),
  passwordEnv: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
    .optional(),
};
const tls = z.strictObject({
  ca: z.string().optional(),
  cert: z.string().optional(),
  key: z.string().optional(),
  serverName: z.string().optional(),
  verify: z.boolean().optional(),
});
const node = z.strictObject({
  ...secrets,
  id: z.string().regex(NAME).optional(),
  url: z.string().min(1),
  username: z.string().optional(),
  tls: tls.optional(),
  sentinel: z
    .strictObject({
      ...secrets,
      name: z.string().min(1),
      nodes: z.array(z.string()).min(1),
      username: z.string().optional(),
    })
    .optional(),
});
const settings = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));
const context = z.strictObject({
  ...secrets,
  nodes: z.array(node).min(1),
  lane: z.string().regex(LANE).optional(),
  cluster: z
    .string()
    .regex(/^[A-Za-z0-9_-]+\.\d+$/)
    .optional(),
  username: z.string().optional(),
  tls: tls.optional(),
  sequencers: z.array(z.url()).optional(),
  settings: settings.optional(),
});
const file = z.strictObject({
  current: z.string().optional(),
  contexts: z.record(z.string().regex(NAME), context).default({}),
  settings: settings.optional(),
});

function checkSettings(values: Record<string, unknown> | undefined, where: string, path: string): void {
  for (const [name, value] of Object.entries(values ?? {})) {
    const reader = SETTING_READERS[name];
    if (!reader)
      throw badConfig(
        path,
        `${where}.${name}: there is no such setting (known: ${Object.keys(SETTING_READERS).join(', ')})`,
      );
    try {
      reader(String(value), `${where}.${name}`);
    } catch (error) {
      throw badConfig(path, error instanceof SeqError ? error.message : String(error));
    }
  }
}

/**
 * Aliases that multiply, that point nowhere or at themselves, and endless nesting are errors of the file like any
 * other.
 */
function readYaml(text: string, path: string): unknown {
  try {
    const document = parseDocument(text);
    if (document.errors[0]) throw document.errors[0];
    return document.toJS({ maxAliasCount: 10 }) as unknown;
  } catch (error) {
    throw badConfig(path, `not YAML: ${wrongYaml(error)}`);
  }
}

/** Says what is wrong and where, without quoting the file: a secret may be in the wrong place. */
function wrongYaml(error: unknown): string {
  const { code, linePos } = error as { code?: string; linePos?: { line: number; col: number }[] };
  if (code === undefined) return 'an alias points nowhere, at itself, or too often';
  const at = linePos?.[0];
  return `${code.toLowerCase().replaceAll('_', ' ')}${at ? ` at line ${at.line}, column ${at.col}` : ''}`;
}

/**
 * A plain word as a key is a typing error and is named in the message. Any other text might be a secret in the wrong
 * place.
 */
const WORD = /^[A-Za-z-]{1,16}$/;

function wrongForm(issue: z.core.$ZodIssue | undefined): string {
  const where = issue?.path.join('.') || 'top level';
  if (issue?.code === 'unrecognized_keys')
    return (
      `${where}: unrecognized key${issue.keys.length === 1 ? '' : 's'} ` +
      `${issue.keys.map((key) => (WORD.test(key) ? `'${key}'` : '(not a word, not shown)')).join(', ')}`
    );
  return `${where}: ${issue?.message ?? 'wrong form'}`;
}

export function parseConfig(text: string, path: string): ConfigFile {
  const result = file.safeParse(readYaml(text, path) ?? {});
  if (!result.success) {
    throw badConfig(path, wrongForm(result.error.issues[0]));
  }
  const config = result.data as ConfigFile;
  if (config.current !== undefined && !config.contexts[config.current])
    throw badConfig(path, `current: there is no context '${config.current}'`, {
      next: ['seq context ls', 'seq context use NAME'],
    });
  checkSettings(config.settings, 'settings', path);
  for (const [name, entry] of Object.entries(config.contexts)) {
    checkSettings(entry.settings, `contexts.${name}.settings`, path);
    for (const each of entry.nodes) {
      try {
        checkUrl(each.url);
      } catch (error) {
        throw badConfig(
          path,
          `contexts.${name}: ${(error as Error).message}`,
          error instanceof SeqError ? { next: error.next } : {},
        );
      }
      const ways = [each.passwordFile, each.passwordCommand, each.passwordEnv].filter((way) => way !== undefined);
      if (ways.length > 1)
        throw badConfig(
          path,
          `contexts.${name}: node ${each.id ?? each.url} names ${ways.length} places for one password`,
        );
    }
  }
  return config;
}

export function formatConfig(config: ConfigFile): string {
  return stringify(config, { lineWidth: 0 });
}
