// Errors of the command line itself: arguments, configuration, output, limits.
import type { Code } from './code.js';

export const SHELL = {
  USAGE: {
    meaning: 'The arguments do not fit the command.',
    causes: ['a typo', 'a flag of another command'],
    todo: ['seq COMMAND --help'],
  },
  UNKNOWN_COMMAND: { meaning: 'There is no such command.', causes: ['a typo'], todo: ['seq --help'] },
  UNKNOWN_CODE: {
    meaning: 'This is neither a known code nor the text of a known message.',
    causes: ['a typo', 'a code of another version'],
    todo: ['seq explain lists all codes'],
  },
  BAD_VALUE: {
    meaning: 'A value cannot be read: durations need a unit (2s), sizes are 256KiB or 1000, counts are digits only.',
    causes: ['a bare number as duration', '1e3, 0x10, a sign'],
    todo: ['write it as the message says'],
  },
  BAD_NODE_URL: {
    meaning: "A node's address cannot be used.",
    causes: ['a wrong scheme or port', 'a password inside the address'],
    todo: ['[ID=]redis://HOST:PORT', 'SEQ_PASSWORD_FILE=FILE for the password'],
  },
  BAD_LANE: {
    meaning: "A lane's name is 1 to 32 of a-z, 0-9 and -.",
    causes: ['capitals or other signs'],
    todo: ['choose another name'],
  },
  BAD_CONFIG: {
    meaning: 'The configuration has an invalid form or value.',
    causes: ['edited by hand', 'a setting of another version'],
    todo: ['seq config validate'],
  },
  CREDENTIALS_DIFFER: {
    meaning: 'Nodes of one cluster need different credentials, and a service has one user, password and certificate.',
    causes: ['a node of the context has credentials of its own', 'sentinels with a password'],
    todo: ['give all nodes the same user', 'run seq run with its own SEQ_CONFIG'],
  },
  NOT_BUILT: {
    meaning: 'The folder of this program holds its sources, and no built program.',
    causes: ['a clone before its first build'],
    todo: ['npm ci && npm run build (in that folder)'],
  },
  CONFIG_NOT_FOUND: {
    meaning: 'SEQ_CONFIG names a file that is not there.',
    causes: ['a wrong path'],
    todo: ['unset SEQ_CONFIG', 'seq context set NAME --node URL creates it'],
  },
  SETTINGS_DIFFER: {
    meaning:
      'seq run was given a de-duplication window, a number of remembered keys, a largest block or a producer that is ' +
      "not the cluster's. The cluster has agreed on these, so that every sequencer treats items alike.",
    causes: [
      'a flag, SEQ_* variable or context from another cluster',
      'a flag that was meant for cluster init',
      'a batch sequencer on a lane of exec, or the other way round; or an operator has changed the producer',
    ],
    todo: ["leave the setting out: a sequencer takes the cluster's", 'seq config show --origin'],
  },
  CONFIG_LOCKED: {
    meaning: 'Another seq is changing the config file.',
    causes: ['two commands at once'],
    todo: ['run it again'],
  },
  CONTEXT_NOT_FOUND: {
    meaning: 'The config file has no context of that name.',
    causes: ['a typo', 'another home or XDG_CONFIG_HOME'],
    todo: ['seq context ls'],
  },
  NO_CLUSTER: {
    meaning: 'Nothing says which nodes to ask.',
    causes: ['no --node, no SEQ_NODE, no context in use'],
    todo: ['seq lab up', 'seq context use NAME', '--node redis://HOST:PORT for each node'],
  },
  DUPLICATE_NODE: {
    meaning: 'The same address or id is given for two nodes: its vote would count twice.',
    causes: ['a copy-and-paste mistake'],
    todo: ['name each node once'],
  },
  SAME_SERVER: {
    meaning: 'Two addresses lead to one server (same run id): its vote would count twice.',
    causes: ['two names of one host', 'one proxy in front of both'],
    todo: ['give every node a server of its own'],
  },
  NODE_NOT_FOUND: { meaning: 'The cluster has no node of that id.', causes: ['a typo'], todo: ['seq node list'] },
  SECRET_UNREADABLE: {
    meaning: 'The file, command or variable for the password did not give a password.',
    causes: ['permissions', 'an unset variable'],
    todo: ['check the place named in the message'],
  },
  CERTIFICATE_UNREADABLE: {
    meaning: 'A certificate or key file could not be read.',
    causes: ['a wrong path', 'permissions'],
    todo: ['check the file named in the message'],
  },
  FILE_EXISTS: {
    meaning: 'The output file already exists, and seq never overwrites it.',
    causes: ['an earlier bundle'],
    todo: ['name another file with --file'],
  },
  FILE_NOT_FOUND: {
    meaning: 'A named file does not exist.',
    causes: ['a wrong path'],
    todo: ['check the path'],
  },
  SYSTEM_ERROR: {
    meaning: 'The operating system refused something.',
    causes: ['permissions', 'no space', 'a limit'],
    todo: ['see the message'],
  },
  OUTPUT_FAILED: {
    meaning: 'The answer could not be written.',
    causes: ['the disk is full', 'the output device or file system is gone'],
    todo: ['write it somewhere else'],
  },
  DEADLINE: {
    meaning: 'The command reached its --timeout; the message says at which step.',
    causes: ['silent nodes', 'a limit too short'],
    todo: ['seq status', 'run it with a longer --timeout'],
  },
  INTERRUPTED: {
    meaning: 'A signal ended the command. The field "changed" says what the command may have changed.',
    causes: ['Ctrl-C', 'SIGTERM'],
    todo: ['run it again: it finishes what was begun'],
  },
  CONFIRMATION_NEEDED: {
    meaning: 'The change must be confirmed before anything is done.',
    causes: ['no terminal to ask on', "another digest than the plan's"],
    todo: ['add the flag named in the message'],
  },
  DECLINED: {
    meaning: 'The question was answered with no: nothing was done.',
    causes: [],
    todo: ['run it again if that was not meant'],
  },
  INVARIANT: {
    meaning: 'An invariant of the protocol is broken (docs/PROTOCOL.md section 3).',
    causes: ['a bug', 'data changed by somebody else'],
    todo: ['keep the evidence', 'report it with --trace'],
  },
  BUG: {
    meaning: 'An unexpected error inside seq.',
    causes: ['a bug in seq'],
    todo: ['report it with what --trace prints'],
  },
  TTL_TOO_SHORT: {
    meaning: 'Only an accepted write renews the lease: ttl must be at least 2 × block-time + node-timeout.',
    causes: ['a short --ttl', 'a long --block-time'],
    todo: ['raise --ttl or lower --block-time'],
  },
  REDIS_CLUSTER: {
    meaning: 'A node is part of a Redis Cluster; the protocol needs independent servers.',
    causes: ['cluster-enabled yes'],
    todo: ['use plain Redis servers'],
  },
  NODE_DENIED: {
    meaning: 'A node refuses the user or the password.',
    causes: ['no or a wrong password', 'missing permissions'],
    todo: ['SEQ_PASSWORD_FILE=FILE, SEQ_USERNAME=USER', 'seq explain NOPERM'],
  },
  NODE_UNREACHABLE: {
    meaning: 'A node could not be reached within the limit.',
    causes: ['server or network down'],
    todo: ['redis-cli -u URL ping'],
  },
  NO_ANSWER: {
    meaning: 'A node did not answer within its limit. Its state is unknown.',
    causes: ['it hangs, is down, or is far away'],
    todo: ['reach it', 'raise --node-timeout'],
  },
  WAIT_TIMED_OUT: {
    meaning: 'An expected event did not happen within the limit.',
    causes: ['a process that does not become ready'],
    todo: ['seq lab logs NAME', 'seq status'],
  },
  COMMAND_FAILED: {
    meaning: 'A command that was started as part of this one failed.',
    causes: ['see the message'],
    todo: ['run that command by itself'],
  },
  BAD_BLOCK_TIME: {
    meaning: 'The block time is below 1 ms.',
    causes: ['--block-time 0'],
    todo: ['--block-time 1ms or more'],
  },
  BAD_BLOCK_SIZE: {
    meaning: 'The largest block is outside 1 KiB to 16 MiB: a block must fit into one write.',
    causes: ['a typo in --max-block-bytes', 'a number without its unit'],
    todo: ['--max-block-bytes between 1KiB and 16MiB'],
  },
  BAD_RETENTION: {
    meaning: 'The nodes must keep at least two blocks: the newest one and the one before it.',
    causes: ['--retain-blocks below 2'],
    todo: ['--retain-blocks 2 or more'],
  },
  BAD_ID: {
    meaning:
      "A sequencer's id is 1 to 64 letters, digits, dots, dashes or underscores, and begins with a letter or digit.",
    causes: ['another sign in --id', 'a host name with other signs, where no --id is given'],
    todo: ['--id NAME'],
  },
  UNREADABLE_FILE: {
    meaning: 'A certificate or key file that a flag names cannot be read.',
    causes: ['a typo', 'permissions'],
    todo: ['check the path and who may read it'],
  },
} satisfies Record<string, Code>;
