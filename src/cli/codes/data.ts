// Errors of stores, streams, submissions, feeds and the HTTP server.
import type { Code } from './code.js';

export const DATA = {
  STORE_UNREADABLE: {
    meaning: 'The store cannot be read.',
    causes: ['permissions', 'a damaged file, or a file of another program'],
    todo: ['check the folder of --store', 'start with an empty store: it is filled from nodes and peers'],
  },
  STORE_DAMAGED: {
    meaning:
      "A block in a sequencer's store does not match its hash. No node, feed, child or peer gets it. The sequencer " +
      'fetches the right bytes from the nodes and from peers, and checks them against the chain.',
    causes: ['a disk or memory that changed bits', 'a file changed by hand'],
    todo: ['check the disk', 'start a sequencer that has the block, with --http: the store is repaired from it'],
  },
  STORE_FOREIGN: {
    meaning: 'The store holds the chain of another cluster or lane.',
    causes: ['a wrong --store', 'the cluster was made anew'],
    todo: ['give each cluster and lane its own store'],
  },
  STORE_LOCKED: {
    meaning: 'Another process is using this store for writing.',
    causes: ['a sequencer with the same --store runs, here or in another container'],
    todo: ['stop it, or choose another --store'],
  },
  STORE_ON_NETWORK: {
    meaning: 'The store lies on a network disk. LMDB is made for disks of one machine.',
    causes: ['--store names a directory of NFS, SMB, CephFS or the like'],
    todo: ['put the store on a disk of this machine: a new one is filled from nodes and peers'],
  },
  LOG_LINES_LOST: {
    meaning: 'Nothing took the log for a while. More lines came than wait for a reader, and these were left out.',
    causes: ['the reader of the pipe stood still', 'a terminal was stopped (Ctrl-S)', 'the disk of the log was full'],
    todo: ['look at what reads the log', 'the lines behind this one are whole'],
  },
  STORE_NOT_FOUND: {
    meaning: 'There is no store in that folder.',
    causes: ['a wrong path', 'no sequencer ran there yet'],
    todo: ['check --store'],
  },
  STORE_WRITE_FAILED: {
    meaning: 'A committed block could not be written to the store; no receipt was given for it.',
    causes: ['the disk is full or read-only'],
    todo: ['repair the disk and start the sequencer again'],
  },
  STORE_CLOSED: {
    meaning: 'The store was closed while a command still needed it.',
    causes: ['the process is stopping'],
    todo: ['start it again'],
  },
  HEIGHT_NOT_FOUND: {
    meaning: 'That height is not committed yet.',
    causes: ['a height above the head'],
    todo: ['seq stream tail --follow waits for it'],
  },
  BELOW_FLOOR: {
    meaning: 'The nodes no longer keep that height, and nobody else offered it.',
    causes: ['older than the retained blocks'],
    todo: ['name a sequencer (--peer URL) or a store (--store DIR) that has it', 'start at the floor in the message'],
  },
  BLOCK_UNREADABLE: {
    meaning: 'The block is committed, but no node gave it in time.',
    causes: ['nodes silent or slow'],
    todo: ['run it again', 'raise --node-timeout'],
  },
  ARCHIVE_CHANGED: {
    meaning: 'A feed or store gave different blocks the second time.',
    causes: ['it was replaced while it was read'],
    todo: ['run it again'],
  },
  NO_BLOCK: {
    meaning: 'The sequencer has no block at that height.',
    causes: ['not committed yet', 'before its store begins'],
    todo: ['GET /v1/head', 'seq stream tail'],
  },
  FEED_BROKEN: {
    meaning: 'A feed of committed blocks ended early.',
    causes: ['the sequencer ended'],
    todo: ['run it again'],
  },
  TOO_MANY_FEEDS: {
    meaning: 'The sequencer already serves its maximum number of feeds.',
    causes: ['many readers'],
    todo: ['read from another sequencer'],
  },
  ITEM_SET_ASIDE: {
    meaning:
      'The exec child failed each time it was offered this item, also when the item was alone. The sequencer offers ' +
      'it no more, so that the others go on. The message has the reason of the child.',
    causes: ['an item that the child cannot take', 'a bug of the child'],
    todo: ['change the item', 'fix the child and start the sequencers again: they forget what was set aside'],
  },
  ITEM_TOO_LARGE: {
    meaning: 'One item does not fit into one block.',
    causes: ['a line or frame above --max-block-bytes'],
    todo: ['split it', 'raise --max-block-bytes on every sequencer'],
  },
  BATCH_TOO_LARGE: {
    meaning: 'One request has more items than a sequencer accepts at once.',
    causes: ['a large batch'],
    todo: ['send fewer items per request'],
  },
  BODY_TOO_LARGE: {
    meaning: 'The request is larger than a sequencer keeps in memory.',
    causes: ['a large batch', 'a proxy before the sequencers takes less than they do'],
    todo: ['send smaller requests', 'raise the limit of the proxy'],
  },
  KEY_CONFLICT: {
    meaning: 'The key was used before for other bytes. Nothing was taken in.',
    causes: ['one key for two contents', 'a file changed between two submissions'],
    todo: ['use a new key for new content'],
  },
  FILE_UNREADABLE: {
    meaning: 'The input file cannot be read.',
    causes: ['permissions', 'a directory'],
    todo: ['ls -l FILE'],
  },
  FRAME_TRUNCATED: {
    meaning: 'The input ends inside a frame.',
    causes: ['a cut file'],
    todo: ['give the whole file; --resume goes on from there'],
  },
  NOT_TEXT: {
    meaning: 'With --text the input was read as UTF-16, as it begins, and it is none.',
    causes: ['a file in another encoding', 'binary data'],
    todo: ['leave out --text: then the bytes are sequenced as they are', 'convert the file to UTF-8 first'],
  },
  INPUT_CHANGED: {
    meaning: 'The input is not the one that was submitted before, so --resume cannot go on.',
    causes: ['the file was changed'],
    todo: ['submit it as a new file (without --resume)'],
  },
  OUT_OF_ORDER: {
    meaning: 'An item was sequenced before an earlier item of the same input. This must never happen.',
    causes: ['a bug'],
    todo: ['report it with --trace'],
  },
  OUTCOME_UNKNOWN: {
    meaning: 'Sent, but whether it took effect is not known.',
    causes: ['leadership was lost before the commit was established'],
    todo: ['send it again with the same key: it is sequenced once', 'seq submit --resume'],
  },
  SHORT_ANSWER: {
    meaning: 'The sequencer answered for fewer items than were sent.',
    causes: ['it ended meanwhile', 'a proxy cut the answer'],
    todo: ['run it again with --resume'],
  },
  REFUSED: {
    meaning: 'The sequencer refused the request.',
    causes: ['see the message'],
    todo: ['use one version of seq everywhere'],
  },
  NOT_LEADER: {
    meaning: 'This sequencer does not lead and knows no leader to forward the request to.',
    causes: ['leadership is moving'],
    todo: ['send it again'],
  },
  STOPPING: {
    meaning: 'The sequencer is stopping and accepts no new items.',
    causes: ['SIGTERM'],
    todo: ['send it to another one'],
  },
  NO_SEQUENCER: {
    meaning: 'No sequencer answered.',
    causes: ['none runs', 'wrong addresses'],
    todo: ['seq status', '--peer URL'],
  },
  NO_PROGRESS: {
    meaning: 'Sequencers answer, but nothing was sequenced within the limit.',
    causes: ['no leader', 'no quorum'],
    todo: ['seq status', 'run it again with --resume'],
  },
  TOKEN_NEEDED: {
    meaning: 'The HTTP server wants a bearer token.',
    causes: ['it runs with --http-token-file'],
    todo: ['--http-token-file FILE, or Authorization: Bearer TOKEN'],
  },
  CERTIFICATE_NEEDED: {
    meaning: 'The HTTP server serves only callers with a certificate of its authority.',
    causes: ['it runs with --http-client-ca', 'a certificate of another authority, or one that is no longer valid'],
    todo: ['--http-cert FILE --http-key FILE'],
  },
  FORWARD_DENIED: {
    meaning: 'The leader refused a request that a follower forwarded.',
    causes: ['different tokens on the sequencers', 'certificates of different authorities'],
    todo: ['use one token file, and certificates of one authority, for all of them'],
  },
  BROWSER_REFUSED: {
    meaning: 'Requests from web pages are refused without a token.',
    causes: ['a page in a browser'],
    todo: ['run with --http-token-file and send the token'],
  },
  DUPLICATE_ID: {
    meaning: 'Another process runs as a sequencer under the same id. The one that leads goes on, else the older one.',
    causes: ['two start commands with one --id', 'a cloned machine: the default id is the host name'],
    todo: ['give every sequencer an --id of its own'],
  },
  LEADER_ADDRESS: {
    meaning: 'Somebody else answers at the address that the leader announces. Nothing was taken in.',
    causes: [
      'the leader announces an address that means another machine from here, such as 127.0.0.1',
      'two sequencers announce one address',
      'a proxy or balancer stands in between',
    ],
    todo: ['start the leader with --advertise http://HOST:PORT, an address that every sequencer reaches'],
  },
  TOKEN_SCOPE: {
    meaning: 'The token is known, and not for this route.',
    causes: ['its line in the file of --http-token-file names other scopes'],
    todo: ['send another token', 'add the scope (submit, read or metrics) to its line'],
  },
  HOST_REFUSED: {
    meaning: 'Without a token, the port answers under the names of loopback only.',
    causes: ['a web page that gave its name the address 127.0.0.1', 'a proxy that passes its own host name on'],
    todo: ['name 127.0.0.1 or localhost in the request', 'run with --http-token-file and send the token'],
  },
  BAD_REQUEST: {
    meaning: 'The request does not follow HTTP or this API.',
    causes: ['a wrong header or path'],
    todo: ['see the message'],
  },
  MALFORMED: {
    meaning: 'The body cannot be read.',
    causes: ['not NDJSON of {key?, data|base64}'],
    todo: ['see the message for the line'],
  },
  ENCODED_BODY: {
    meaning: 'Compressed request bodies are not accepted.',
    causes: ['Content-Encoding'],
    todo: ['send it uncompressed'],
  },
  NO_ROUTE: { meaning: 'There is no such path or method.', causes: ['a typo'], todo: ['GET /v1/status'] },
  REQUEST_TIMEOUT: {
    meaning: 'The request was not complete in time.',
    causes: ['a slow or broken client'],
    todo: ['send it again'],
  },
  HEADERS_TOO_LARGE: {
    meaning: "The request's headers are too large.",
    causes: ['a proxy that adds headers'],
    todo: ['send fewer headers'],
  },
  HTTP_ADDRESS: {
    meaning:
      'The value of --http cannot be used: it must be HOST:PORT, and the host must be an address of this machine.',
    causes: ['a typo', 'an address of another machine'],
    todo: ['--http 127.0.0.1:PORT'],
  },
  HTTP_NOT_LOOPBACK: {
    meaning: 'Listening beyond loopback needs a token or TLS.',
    causes: ['--http 0.0.0.0:PORT'],
    todo: ['--http-token-file FILE, or a loopback address'],
  },
  HTTP_TOKEN_FILE: {
    meaning: 'The token file cannot be used.',
    causes: ['missing, empty, or readable by everybody'],
    todo: ['write a long random token to it, mode 0600'],
  },
  PORT_IN_USE: {
    meaning: 'Another process listens on that port.',
    causes: ['a sequencer that still runs'],
    todo: ['choose another port'],
  },
  NOT_FOUND: {
    meaning: 'The requested object does not exist.',
    causes: ['a height below the first block of a store'],
    todo: ['see the message for where it begins'],
  },
  PEER_URL: {
    meaning: 'A peer is the HTTP address of a sequencer.',
    causes: ['a typo'],
    todo: ['--peer http://HOST:PORT'],
  },
  PEER_UNREACHABLE: {
    meaning: 'The peer did not answer, or wants a token.',
    causes: ['it is down', 'it runs with --http-token-file'],
    todo: ['check the address', '--http-token-file FILE'],
  },
  PEER_LACKS_BLOCKS: {
    meaning: 'The peer does not have the blocks that are needed.',
    causes: ['its store begins above them'],
    todo: ['name another peer'],
  },
  PEER_SPOKE_GARBAGE: {
    meaning: 'The data that the peer sent cannot be read or does not match its hashes. None of it was used.',
    causes: ['not a sequencer', 'another version'],
    todo: ['check the address'],
  },
  RANGE_TOO_LONG: {
    meaning: 'The range has too many blocks to verify at once.',
    causes: ['a store very far behind'],
    todo: ['copy the store of a sequencer that has them'],
  },
  MALFORMED_BLOCK: {
    meaning: 'A block holds no items that this version can read.',
    causes: ['made by --producer exec', 'made by a newer version'],
    todo: ['read it without --items'],
  },
  DOCUMENT_TOO_LARGE: {
    meaning: 'The answer is too long for one document.',
    causes: ['-o json or yaml over a long range'],
    todo: ['-o ndjson', 'a shorter range'],
  },
  BOOTSTRAP_BROKEN_OFF: {
    meaning: 'The initialisation of the nodes (cluster init) did not finish.',
    causes: ['a node was lost in the middle', 'Ctrl-C'],
    todo: ['seq cluster init again: it finishes what was begun'],
  },
  NO_PEER: {
    meaning: 'Blocks are needed that the nodes no longer keep, and no peer was named that could give them.',
    causes: ['a store whose head is below the retained blocks', 'an empty store beside an older chain'],
    todo: ['run with --peer URL of a sequencer that has them'],
  },
  RECOVERY_BROKEN_OFF: {
    meaning:
      'A recovery did not finish. A node that the recovery marked does not take part until it has the ' +
      'whole chain.',
    causes: ['a node was lost in the middle', 'Ctrl-C'],
    todo: ['seq cluster recover again: it makes a new plan from the present state and continues'],
  },
  NOTHING_TO_RECOVER_FROM: {
    meaning: "Neither a node nor a reachable sequencer's store holds a chain that can be verified.",
    causes: ['every node was wiped and no sequencer runs'],
    todo: ['start a sequencer with its store, or name one: --peer URL'],
  },
  CLUSTER_RECOVERED: {
    meaning:
      'The cluster was recovered under a new generation while this sequencer ran. Processes of the old ' +
      'generation must not write any more.',
    causes: ['seq cluster recover'],
    todo: ['start the sequencer again: its store is unchanged'],
  },
  NOT_A_BUNDLE: {
    meaning: 'The file given as --from-bundle is not one that `seq stream export` wrote.',
    causes: ['a wrong path', 'a directory, a pipe or a device'],
    todo: ['seq stream export'],
  },
  BUNDLE_VERSION: {
    meaning: 'The bundle was written in a form that this version does not read.',
    causes: ['it was made by another version of seq'],
    todo: ['use the version that wrote it: head -c 100 FILE names it'],
  },
  BUNDLE_DAMAGED: {
    meaning:
      'The bundle was cut short or changed: a line is malformed, or the content does not match the ' +
      'digest in the bundle. Nothing of it is shown.',
    causes: ['an incomplete copy', 'changed with an editor'],
    todo: ['copy it again', 'seq stream export'],
  },
  BUNDLE_TOO_LARGE: {
    meaning: 'The bundle is larger than the limit for files from elsewhere.',
    causes: ['very long streams or blocks', 'not a bundle at all'],
    todo: ['seq stream export --from HEIGHT --to HEIGHT', 'seq stream export --no-payloads'],
  },
  NOT_ADMITTED_YET: {
    meaning: 'The leader has not admitted the node within the limit.',
    causes: ['it runs with --no-readmit', 'it does not reach the node', 'the node needs many blocks first'],
    todo: ['seq node admit --on ID --timeout 2m', "read the leader's log"],
  },
  STORE_FAILED: {
    meaning: 'The sequencer stopped: its store did not take a committed block. The block is safe on a quorum of nodes.',
    causes: ['the disk is full, read-only or broken'],
    todo: ['repair the disk and start the sequencer again', 'keep the store directory'],
  },
} satisfies Record<string, Code>;
