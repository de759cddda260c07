// Which sequencers belong to the client? Those of one cluster and one lane: what the caller named, or what the first
// answer said. Another generation of the same cluster is another cluster: a recovery may have left out blocks.
import { EXIT, SeqError } from '../core/errors.js';
import { targetOf } from '../core/http-call.js';
import {
  askStatus,
  type RemoteStatus,
  type SequencerAccess,
  type StatusAnswer,
} from '../core/nodes/sequencer-client.js';
import { usage } from './errors.js';

interface Wanted {
  cluster?: string;
  lane?: string;
}

export interface SequencersOptions {
  urls: readonly string[];
  access: SequencerAccess;
  wanted: Wanted;
}

/** Time limit of one question for the status. */
const STATUS_MS = 1000;

export class Sequencers {
  readonly urls: readonly string[];
  readonly access: SequencerAccess;
  #wanted: Wanted;

  constructor({ urls, access, wanted }: SequencersOptions) {
    if (!Array.isArray(urls) || urls.length === 0) throw usage('there is no address', "urls: ['http://HOST:PORT']");
    for (const url of urls) {
      const target = targetOf(String(url), '/');
      if (typeof target === 'string') throw usage(target, "urls: ['http://HOST:PORT']");
    }
    this.urls = [...new Set(urls)];
    this.access = access;
    this.#wanted = wanted;
  }

  get wanted(): Wanted {
    return this.#wanted;
  }

  /** From now on, only sequencers of this one's cluster and lane count. */
  meet({ cluster, lane }: RemoteStatus): void {
    this.#wanted = { cluster, lane };
  }

  /** All addresses, asked at once. A sequencer of another cluster or lane counts as one that gave no answer. */
  async ask(signal: AbortSignal): Promise<StatusAnswer[]> {
    const answers = await Promise.all(this.urls.map((url) => askStatus(url, this.access, STATUS_MS, signal)));
    return answers.map((answer) => {
      const why = answer.answered ? this.#stranger(answer.status) : '';
      return why === '' ? answer : { url: answer.url, answered: false, why, stranger: true };
    });
  }

  #stranger({ id, cluster, lane }: RemoteStatus): string {
    const wanted = this.#wanted;
    if (wanted.cluster !== undefined && wanted.cluster !== cluster)
      return `${id} is of cluster ${cluster}, not ${wanted.cluster}`;
    return wanted.lane === undefined || wanted.lane === lane
      ? ''
      : `${id} is of lane ${JSON.stringify(lane)}, not ${JSON.stringify(wanted.lane)}`;
  }
}

/** Throws where asking again is useless: every address is of another cluster, or wants a token. */
export function refuseHopeless(answers: readonly StatusAnswer[]): void {
  if (answers.every((answer) => !answer.answered && answer.stranger))
    throw new SeqError({
      code: 'WRONG_CLUSTER',
      exit: EXIT.precondition,
      message: 'every address leads to a sequencer of another cluster or lane',
      why: whyNobody(answers),
      changed: 'nothing',
      next: [],
    });
  for (const [code, what, runWith] of [
    ['TOKEN_NEEDED', 'token', '--http-token-file'],
    ['CERTIFICATE_NEEDED', 'certificate', '--http-client-ca'],
  ] as const)
    if (answers.every((answer) => !answer.answered && answer.code === code))
      throw new SeqError({
        code,
        exit: EXIT.denied,
        message: `${answers.map(({ url }) => url).join(', ')} asked for a ${what}`,
        why: `the sequencers run with ${runWith}`,
        changed: 'nothing',
        next: [],
      });
}

/** One clause for each address. */
export function whyNobody(answers: readonly StatusAnswer[]): string {
  return answers
    .map((answer) => `${answer.url}: ${answer.answered ? `${answer.status.id} is ${answer.status.role}` : answer.why}`)
    .join('; ');
}
