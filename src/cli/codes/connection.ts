// Codes of the operating system and of TLS that stand in the text of a node without an answer.
import { TLS_CAUSES } from '../../core/tls-causes.js';
import type { Code } from './code.js';

const code = (meaning: string, ...todo: string[]): Code => ({ meaning, causes: [], todo });
const START = 'start that server, or put its address right: seq config show';
const ROUTE = 'look at the address, the route and the firewalls between here and that server';

const upper = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
const tls = Object.entries(TLS_CAUSES).map(([name, cause]) => [
  name,
  code(`TLS with a node failed. ${upper(cause)}`, 'openssl s_client -connect HOST:PORT -showcerts </dev/null'),
]);

export const CONNECTION: Record<string, Code> = {
  ECONNREFUSED: code('Nothing listens at the address of that node.', START),
  ECONNRESET: code(
    'The server, or something on the way to it, ended the connection.',
    'look at the log of that server',
  ),
  ETIMEDOUT: code('Nothing at the address of that node answered in time.', ROUTE),
  EHOSTUNREACH: code('There is no way to the host of that node.', ROUTE),
  ENETUNREACH: code('There is no way to the network of that node.', ROUTE),
  ENOTFOUND: code('The name of that host is not known.', 'put the name right: seq config show'),
  EAI_AGAIN: code('The name service did not answer.', 'look at the name servers of this machine'),
  ...(Object.fromEntries(tls) as Record<string, Code>),
};
