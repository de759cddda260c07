// How a command calls the HTTP servers of sequencers: with which token, whom it trusts, and what it shows to a server
// that asks for a certificate.
import { Flags } from '@oclif/core';
import type { ClientTls } from '../../core/http-call.js';
import { pemPair } from '../../core/serve/http-files.js';
import { readCaFile } from '../../core/serve/listen.js';
import { readTokenFile } from '../../core/serve/tokens.js';

export const CALLER_FLAGS = {
  'http-token-file': Flags.string({ helpValue: 'FILE', description: 'bearer token of the sequencers' }),
  'http-ca': Flags.string({ helpValue: 'FILE', description: "certificate authority of the sequencers' TLS" }),
  'http-cert': Flags.string({
    helpValue: 'FILE',
    dependsOn: ['http-key'],
    description: 'certificate (PEM) for sequencers that ask their callers for one',
  }),
  'http-key': Flags.string({ helpValue: 'FILE', dependsOn: ['http-cert'], description: 'its key' }),
};

export interface CallerAccess {
  token?: string;
  tls: ClientTls;
}

export type CallerFiles = Record<keyof typeof CALLER_FLAGS, string>;

/** `get` gives the value of a setting, '' for none. */
export async function callerFiles(get: (flag: keyof CallerFiles) => Promise<string>): Promise<CallerFiles> {
  return {
    'http-token-file': await get('http-token-file'),
    'http-ca': await get('http-ca'),
    'http-cert': await get('http-cert'),
    'http-key': await get('http-key'),
  };
}

/** Throws SeqError 78. */
export function readCallerFiles(files: CallerFiles): CallerAccess {
  const { 'http-token-file': tokens, 'http-ca': ca, 'http-cert': cert, 'http-key': key } = files;
  return {
    ...(tokens === '' ? {} : { token: readTokenFile(tokens) }),
    tls: { ...(ca === '' ? {} : { ca: readCaFile(ca) }), ...(cert === '' ? {} : pemPair(cert, key)) },
  };
}
