// What does `seq submit` read, under which keys, and from which position? Decided once the cluster is known, because a
// run on one cluster says nothing about another. Keeps the state file that --resume continues from.
import { keyProblem } from '../../core/chain/items.js';
import { stateHome } from '../../core/home.js';
import type { RemoteStatus } from '../../core/nodes/sequencer-client.js';
import { NOTHING_DONE, inputChanged, type Checkpoint, type SubmitPlan } from '../../core/submit/submit.js';
import {
  identifySource,
  keyPrefixOf,
  prepareState,
  readSource,
  readState,
  statePath,
  writeState,
  type ResumeState,
  type SourceIdentity,
} from '../../core/submit/source.js';
import { asLines, describeForm, told } from '../../core/submit/text-form.js';
import { usageError } from '../support/failure.js';

export interface SubmitInput {
  /** undefined or `-`: stdin. */
  file: string | undefined;
  binary: boolean;
  /** Lines of UTF-8 are made of the input. */
  text: boolean;
  keyPrefix: string | undefined;
  resume: boolean;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
  warning: (text: string) => void;
  /** Something about the input that must be told before the first item of it is sent. */
  caution: (text: string) => void;
}

export interface SubmitJob {
  source: SourceIdentity;
  keyPrefix: string;
  plan(status: RemoteStatus): Promise<SubmitPlan>;
  checkpoint(checkpoint: Checkpoint): void;
}

/** Room for `:` and the number after the prefix. */
const MAX_PREFIX_BYTES = 200;

/** Checks the input before any sequencer is asked. A missing file or a bad prefix then has no effect. */
export async function submitJob(input: SubmitInput): Promise<SubmitJob> {
  const { keyPrefix } = input;
  const problem =
    keyPrefix === undefined
      ? null
      : (keyProblem(keyPrefix) ??
        (Buffer.byteLength(keyPrefix) > MAX_PREFIX_BYTES
          ? `a prefix is at most ${MAX_PREFIX_BYTES} bytes long`
          : null));
  if (problem !== null) throw usageError(`--key-prefix: ${problem}`, ['--key-prefix NAME']);
  const source: SourceIdentity =
    input.file === undefined || input.file === '-' ? { path: '', size: null } : await identifySource(input.file);
  if (input.resume && source.size === null && keyPrefix === undefined) {
    throw usageError('--resume needs a file or a --key-prefix', [
      'seq submit --resume FILE',
      'seq submit --resume --key-prefix NAME < INPUT (the same name as before)',
    ]);
  }
  let state: Omit<ResumeState, keyof Checkpoint> | undefined;
  let path = '';
  const job: SubmitJob = {
    source,
    keyPrefix: '',
    async plan({ cluster, lane }) {
      path = statePath(stateHome(input.env), {
        cluster,
        lane,
        path: source.path,
        keyPrefix,
        binary: input.binary,
        text: input.text,
      });
      const known = await readState(path);
      const found = input.resume ? known : undefined;
      if (input.resume && !found)
        input.warning(
          'there is no state of an earlier run: everything is sent, and what the sequencers know already ' +
            'is recognised by its key',
        );
      if (found && found.items === 0 && keyPrefix === undefined) await checkBegun(source, found, input);
      job.keyPrefix = found?.keyPrefix ?? keyPrefix ?? (await ownPrefix(source, input));
      state = {
        version: 1,
        cluster,
        lane,
        path: source.path,
        keyPrefix: job.keyPrefix,
        binary: input.binary,
        size: found?.size ?? source.size,
      };
      // A pipe without a name can never be resumed: nothing identifies its state file.
      if (source.size === null && keyPrefix === undefined) state = undefined;
      else
        await prepareState(path).catch((error: Error) => {
          state = undefined;
          input.warning(`no state is kept for --resume: ${error.message}`);
        });
      // Saved before anything is sent. The keys of a first batch whose answer is never received must outlive this
      // process, and the file may grow meanwhile.
      if (known?.keyPrefix !== job.keyPrefix) job.checkpoint(NOTHING_DONE);
      const chunks = source.path === '' ? (process.stdin as AsyncIterable<Buffer>) : readSource(source);
      return {
        input: formOf(chunks, input),
        binary: input.binary,
        keyPrefix: job.keyPrefix,
        ...(found ? { from: found } : {}),
      };
    },
    checkpoint(checkpoint) {
      if (!state) return;
      try {
        writeState(path, { ...state, ...checkpoint });
      } catch (error) {
        state = undefined;
        input.warning(`no state is kept for --resume from here on: ${(error as Error).message}`);
      }
    },
  };
  return job;
}

/** Other items are made of the same file with --text: they have keys of their own. */
async function ownPrefix(source: SourceIdentity, { text, signal }: SubmitInput): Promise<string> {
  const prefix = await keyPrefixOf(source, signal);
  return text ? `t-${prefix}` : prefix;
}

function formOf(chunks: AsyncIterable<Buffer>, input: SubmitInput): AsyncIterable<Buffer> {
  if (input.binary) return chunks;
  if (input.text) return asLines(chunks);
  return told(chunks, (form) => input.caution(`${describeForm(form)}; --text makes lines of UTF-8 of it`));
}

/**
 * A run that ended before its first receipt. It proves nothing about the input except the identity from which its keys
 * were made.
 */
async function checkBegun(source: SourceIdentity, begun: ResumeState, input: SubmitInput): Promise<void> {
  const { size } = begun;
  if (size === null || size === undefined) return;
  if (source.size !== null && source.size < size) throw inputChanged(size, `it is shorter now: ${source.size} bytes`);
  if ((await ownPrefix({ ...source, size }, input)) !== begun.keyPrefix)
    throw inputChanged(size, 'their SHA-256 differs');
}
