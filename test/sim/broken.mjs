// Rules of the engine and of the nodes, each broken alone, and the run that notices. A simulation that does not notice proves nothing: see
// docs/PROOF.md. `from` → `to` in one file of src/core, or `mutant` in the nodes' scripts; `args` find it, `by` is the checker that does.
export const broken = [
  { name: 'tenure-below-quorum', file: 'engine/reign.ts', from: 'nodes: nodes.length, quorum, ttlMs', to: 'nodes: nodes.length, quorum: quorum - 1, ttlMs', args: ['--seed', '3'], by: 'one-block-per-height' },
  { name: 'receipt-before-sync', file: 'engine/delivery.ts', from: 'this.last.then(() => synced)', to: 'this.last.then(() => undefined)', args: ['--seed', '1'], by: 'acknowledged' },
  { name: 'no-deduplication', file: 'engine/inbox.ts', from: 'const receipt = this.options.store.receipt(item.key)', to: 'const receipt = undefined as ReturnType<typeof this.options.store.receipt>', args: ['--seed', '4'], by: 'acknowledged' },
  { name: 'trimmed-before-sync', file: 'engine/local-chain.ts', from: 'next.height - 2, synced()', to: 'next.height - 2', args: ['--seed', '13006'], by: 'liveness' },
  { name: 'lowest-epoch-adopted', file: 'protocol/adoption.ts', from: 'b.epoch - a.epoch', to: 'a.epoch - b.epoch', args: ['--play', 'tie'], by: 'truthful' },
  { name: 'read-without-claim', file: 'protocol/promotion.ts', from: "call: { script: 'claim', owner: state.settings.owner, epoch: state.epoch, ...movesOf(state) }", to: "call: { script: 'inspect' }", args: ['--play', 'uneven'], by: 'truthful' },
  { name: 'epochs-added-up-at-the-head', file: 'protocol/ledger.ts', from: 'one.hash === cell.hash && one.epoch === cell.epoch', to: 'one.hash === cell.hash', args: ['--play', 'copies'], by: 'truthful' },
  { name: 'never-superseding', file: 'protocol/leading.ts', from: "repair || track.head >= block.height ? 'repair' : 'append'", to: "'append'", args: ['--play', 'copies', '--seed', '2'], by: 'liveness' },
  { name: 'node-never-supersedes', mutant: 'noSupersede', args: ['--play', 'copies', '--seed', '2'], by: 'liveness' },
  { name: 'node-exists-is-a-vote', mutant: 'existsIsVote,noSupersede', args: ['--play', 'copies'], by: 'truthful' },
  { name: 'node-no-epoch-check', mutant: 'noEpochCheck', args: ['--seed', '5000', '--memory', '--seeds', '60'], by: 'fencing' },
  { name: 'node-votes-without-memory', mutant: 'noAdmissionCheck', args: ['--seed', '5000', '--memory', '--seeds', '60'], by: 'one-block-per-height' },
  { name: 'moves-not-noted', file: 'protocol/ending.ts', from: "return state.moves === '' ? {} : { moves: state.moves }", to: 'return {}', args: ['--seed', '77000251', '--memory'], by: 'liveness' },
  // A second line: what would do harm without them is stopped by something else as long as that holds (docs/PROOF.md says by what).
  { name: 'unadmitted-nodes-counted', file: 'engine/follower.ts', from: 'admitted: view.admitted', to: 'admitted: true', args: ['--seed', '5000', '--memory', '--seeds', '12'], by: '' },
  { name: 'admitted-without-proof', file: 'protocol/admission.ts', from: '!proven(state, admission)', to: 'false', args: ['--seed', '5000', '--memory', '--seeds', '12'], by: '' },
  { name: 'node-no-claimant-rule', mutant: 'noClaimantRule', args: ['--play', 'uneven', '--seeds', '3'], by: '' },
];
