// The public interface of the package: the client, its types and the codes of its errors (docs/CLIENT.md). It loads
// built-in modules of Node alone. Commands are not part of it.
export { SequencerClient, itemsOf } from './client/client.js';
export type {
  CallOptions,
  ChainItem,
  ClientOptions,
  ConfirmedHead,
  FollowItemsOptions,
  FollowOptions,
  ItemReceipt,
  NewItem,
  SequencerAnswer,
  SequencerLimits,
  SubmitEachOptions,
  SubmitResult,
} from './client/types.js';
export { isErrorCode } from './core/error-codes.js';
export type { ErrorCode } from './core/error-codes.js';
export { SeqError } from './core/errors.js';
export type { CommittedBlock, SequencerStatus } from './core/ports.js';
export type { Epoch, Hash, Height } from './core/protocol/types.js';
