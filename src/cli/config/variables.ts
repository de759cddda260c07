// Which variables of the environment look like settings and are none? Ignored silently, a near miss does harm:
// SEQ_NODES names no nodes.
import { suggest } from '../support/suggest.js';

/** Flags that are read from the environment as well (settings.ts), by what they are for. */
const FLAGS = [
  ...['context', 'node', 'on', 'lane', 'node-timeout', 'timeout', 'dialect', 'lease-key', 'quorum-budget'],
  ...['output', 'interval', 'no-color', 'no-input'],
  ...['id', 'store', 'ttl', 'block-time', 'eager', 'priority', 'producer', 'bootstrap', 'no-readmit', 'log-level'],
  ...['adopt-nodes', 'adopt-producer'],
  ...['max-block-bytes', 'retain-blocks', 'retain-bytes', 'dedup-items', 'dedup-window', 'peer'],
  ...['admin', 'advertise', 'http', 'http-ca', 'http-cert', 'http-client-ca', 'http-key', 'http-token-file'],
];
/** Variables that are no flags. */
const OTHERS = [
  ...['SEQ_CONFIG', 'SEQ_DISABLE', 'SEQ_HANDED_OVER', 'SEQ_ASCII', 'SEQ_REDIS_SERVER'],
  ...['SEQ_USERNAME', 'SEQ_PASSWORD', 'SEQ_PASSWORD_COMMAND', 'SEQ_PASSWORD_FILE'],
  ...['SEQ_TLS_CA', 'SEQ_TLS_CERT', 'SEQ_TLS_KEY', 'SEQ_TLS_SERVER_NAME'],
];
const KNOWN = [...FLAGS.map((flag) => `SEQ_${flag.toUpperCase().replaceAll('-', '_')}`), ...OTHERS];
/** What Kubernetes sets in every container beside a service whose name begins with `seq`. */
const KUBERNETES = /_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$/;
/** Variables of scripts and tests of this package. */
const OWN_SCRIPTS = /^SEQ_(TEST|LINT|CHECK)_/;

/** One sentence for each. */
export function unknownVariables(env: NodeJS.ProcessEnv): string[] {
  return Object.keys(env)
    .filter((name) => /^SEQ_./.test(name) && !KNOWN.includes(name))
    .filter((name) => !KUBERNETES.test(name) && !OWN_SCRIPTS.test(name))
    .sort()
    .map((name) => {
      const [near] = suggest(name, KNOWN);
      return `${name} is no setting and is ignored${near ? `; did you mean ${near}?` : ''}`;
    });
}
