// Why did a TLS connection fail, and which setting fixes it? Waiting fixes none of these.

const AUTHORITY =
  'its certificate is not signed by an authority that is trusted here: name that one in tls.ca (SEQ_TLS_CA)';
const CLIENT =
  'it asks for a client certificate, or refuses this one: set tls.cert and tls.key (SEQ_TLS_CERT, SEQ_TLS_KEY)';
const PLAIN = 'it does not speak TLS at this port: name it with redis://, or name its TLS port';

export const TLS_CAUSES: Readonly<Record<string, string>> = {
  SELF_SIGNED_CERT_IN_CHAIN: AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: AUTHORITY,
  CERT_SIGNATURE_FAILURE: AUTHORITY,
  CERT_HAS_EXPIRED: 'its certificate has expired: renew it on that server, or set the clock of this machine right',
  CERT_NOT_YET_VALID:
    'its certificate is not valid yet: set the clock of this machine, or of the one that signed, right',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'its certificate is for another name: use that name in the address, or set tls.serverName (SEQ_TLS_SERVER_NAME)',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: CLIENT,
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: CLIENT,
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: CLIENT,
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: CLIENT,
  ERR_SSL_WRONG_VERSION_NUMBER: PLAIN,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: PLAIN,
};

/** The sentence for the code of an error, with the code. Null for a code that is about no certificate. */
export function tlsCause(code: string): string | null {
  const cause = TLS_CAUSES[code];
  return cause === undefined ? null : `${cause} (${code})`;
}
