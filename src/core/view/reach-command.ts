// The command that shows why a node cannot be reached. Pure. It must work as it stands: redis-cli knows nothing of the
// certificate authority that seq was given, so it fails on a TLS node whatever is wrong.

const CERTIFICATE = /certificate|self[- ]signed|altname|\bCERT_|unable to verify/i;

/** `note`: what seq was told by the node, or by its connection. */
export function reachCommand(url: string, note: string): string {
  const tls = /^rediss:\/\/(?:[^@/]*@)?([^/?]+)/.exec(url);
  if (tls === null) return `redis-cli -u ${url} ping`;
  // Shows the chain of the server, and whether it answers at all. With a wrong authority the chain says which is right.
  return `openssl s_client -connect ${tls[1]}${CERTIFICATE.test(note) ? ' -showcerts' : ''} </dev/null`;
}

/** It took the connection, and let the time run out. A longer limit tells a slow one from one that hangs. */
export function isHanging(note: string): boolean {
  return /no answer at (handshake|call)\b.*: no answer/.test(note);
}
