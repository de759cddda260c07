// Errors of `seq lab`.
import type { Code } from './code.js';

export const LAB = {
  NO_LAB: {
    meaning: 'There is no lab in this home.',
    causes: ['it was never started', 'another XDG_STATE_HOME'],
    todo: ['seq lab up'],
  },
  LAB_BUSY: {
    meaning: 'Another command is changing this lab.',
    causes: ['two commands at once'],
    todo: ['run it again'],
  },
  LAB_DIFFERS: {
    meaning: 'A lab with other settings is already running.',
    causes: ['lab up with other flags'],
    todo: ['seq lab down, then seq lab up'],
  },
  LAB_NO_SEQUENCER: {
    meaning: 'No sequencer of the lab is left to commit a block.',
    causes: ['all were killed'],
    todo: ['seq lab start seq-a', 'seq lab logs seq-a'],
  },
  LAB_STATE_MALFORMED: {
    meaning: "The lab's state file was not written by this version of seq.",
    causes: ['an older seq', 'edited by hand'],
    todo: ['end its processes, remove its folder, seq lab up'],
  },
  BAD_LAB_SIZE: {
    meaning: 'That many nodes or sequencers are not possible in a lab.',
    causes: ['a number out of range'],
    todo: ['choose a number the message allows'],
  },
  NO_SUCH_PROCESS: { meaning: 'The lab has no process of that name.', causes: ['a typo'], todo: ['seq lab status'] },
  PROCESS_DEAD: {
    meaning: 'That process does not run.',
    causes: ['it was killed or ended'],
    todo: ['seq lab start NAME', 'seq lab logs NAME'],
  },
  PROCESS_PAUSED: {
    meaning: 'That process is paused, not dead.',
    causes: ['seq lab pause'],
    todo: ['seq lab unpause NAME'],
  },
  PROCESS_ENDED: {
    meaning: 'A process ended while it was starting.',
    causes: ['see its log'],
    todo: ['seq lab logs NAME'],
  },
  STILL_RUNNING: {
    meaning: 'A process is still there after SIGKILL.',
    causes: ['it hangs in the kernel'],
    todo: ['see what it is with ps'],
  },
  CANNOT_START: {
    meaning: 'A process could not be started.',
    causes: ['the program is missing or may not be run'],
    todo: ['see the message'],
  },
  REDIS_SERVER_MISSING: {
    meaning: 'There is no redis-server or valkey-server on PATH.',
    causes: ['it is not installed'],
    todo: ['apt-get install redis-server', 'brew install redis'],
  },
  PS_MISSING: {
    meaning: 'Processes cannot be told apart: there is neither /proc nor ps.',
    causes: ['a very small container'],
    todo: ['install ps (procps)'],
  },
  NO_FREE_PORT: {
    meaning: 'No free port was found on loopback.',
    causes: ['very many listeners'],
    todo: ['end some of them'],
  },
  NO_DEMO_FILE: {
    meaning: 'There is no text file to sequence.',
    causes: ['a machine without common text files'],
    todo: ['seq lab demo FILE'],
  },
  UNFIT_DEMO_FILE: {
    meaning: 'That file cannot be used for the demo.',
    causes: ['too small, or not lines of text'],
    todo: ['seq lab demo FILE with another one'],
  },
  NO_FAILOVER_SEEN: {
    meaning: 'Every line is committed, but no block was committed under a new leader.',
    causes: ['the file was finished before the kill'],
    todo: ['give a larger file'],
  },
  LAB_UNFINISHED: {
    meaning: 'An earlier seq lab up was broken off.',
    causes: ['Ctrl-C'],
    todo: ['seq lab up again, or seq lab down'],
  },
  LEAD_MOVED: {
    meaning: 'Leadership moved before the demo could kill the leader it had chosen.',
    causes: ['a busy machine, or a lease that ran out'],
    todo: ['seq lab demo again'],
  },
  NO_ANOMALY: {
    meaning: 'Chaos: in spite of all faults no item was lost, duplicated or reordered, and every answer was true.',
    causes: ['the protocol works as specified'],
    todo: ['seq chaos --duration 10m, for a longer run'],
  },
  ANOMALIES: {
    meaning: 'Chaos: an answer was not true, or the cluster did not recover in time.',
    causes: ['a bug', 'a machine much too busy for so short a lease, when only "heals in time" is named'],
    todo: [
      'read the witness and the files that were kept',
      'seq chaos --seed SEED --keep',
      'seq chaos --ttl 2s on a busy machine',
    ],
  },
} satisfies Record<string, Code>;
