// Which rules are broken on purpose, and which run must notice? A simulation that does not notice proves nothing: see
// docs/PROOF.md. A row changes `from` to `to` in one file of src/core (or has several `edits`), or names a `mutant` of
// the node scripts, or both. `args` start the run, and `by` is the checker that must find it.
/**
 * The changes in src/core that a row makes.
 * @param {any} rule
 * @returns {{ file: string, from: string, to: string }[]}
 */
export function editsOf(rule) {
  return rule?.edits ?? (rule?.file ? [{ file: rule.file, from: rule.from, to: rule.to }] : []);
}

export const broken = [
  {
    name: 'term-below-quorum',
    file: 'sequencer/lead/leadership.ts',
    from: 'quorum: membership.quorum,',
    to: 'quorum: membership.quorum - 1,',
    args: ['--seed', '3'],
    by: 'one-block-per-height',
  },
  {
    name: 'receipt-before-sync',
    file: 'sequencer/commit-pipeline.ts',
    from: '.then(() => synced)',
    to: '.then(() => undefined)',
    args: ['--seed', '1'],
    by: 'acknowledged',
  },
  {
    name: 'no-deduplication',
    file: 'sequencer/lead/inbox.ts',
    from: 'const receipt = this.options.store.receipt(item.key)',
    to: 'const receipt = undefined as ReturnType<typeof this.options.store.receipt>',
    args: ['--seed', '4'],
    by: 'acknowledged',
  },
  {
    name: 'trimmed-before-sync',
    file: 'sequencer/local-chain.ts',
    from: 'next.height - 2, synced()',
    to: 'next.height - 2',
    args: ['--seed', '13006'],
    by: 'liveness',
  },
  {
    name: 'lowest-epoch-adopted',
    file: 'protocol/adoption.ts',
    from: 'b.epoch - a.epoch',
    to: 'a.epoch - b.epoch',
    args: ['--play', 'tie'],
    by: 'truthful',
  },
  {
    name: 'read-without-claim',
    file: 'protocol/promotion.ts',
    from: "call: { script: 'claim', owner: state.settings.owner, epoch: state.epoch, ...configurationOf(state) }",
    to: "call: { script: 'inspect' }",
    args: ['--play', 'uneven'],
    by: 'truthful',
  },
  {
    name: 'epochs-added-up-at-the-head',
    file: 'protocol/ledger.ts',
    from: 'one.hash === cell.hash && one.epoch === cell.epoch',
    to: 'one.hash === cell.hash',
    args: ['--play', 'copies'],
    by: 'truthful',
  },
  {
    name: 'never-superseding',
    file: 'protocol/leading.ts',
    from: "repair || progress.head >= block.height ? 'repair' : 'append'",
    to: "'append'",
    args: ['--play', 'copies', '--seed', '2'],
    by: 'liveness',
  },
  { name: 'node-never-supersedes', mutant: 'noSupersede', args: ['--play', 'copies', '--seed', '2'], by: 'liveness' },
  { name: 'node-exists-is-a-vote', mutant: 'existsIsVote,noSupersede', args: ['--play', 'copies'], by: 'truthful' },
  {
    name: 'node-no-epoch-check',
    mutant: 'noEpochCheck',
    args: ['--seed', '5000', '--memory', '--seeds', '60'],
    by: 'fencing',
  },
  {
    name: 'node-votes-without-memory',
    mutant: 'noAdmissionCheck',
    args: ['--seed', '5000', '--memory', '--seeds', '60'],
    by: 'liveness', // what the node accepts is no vote, because the configuration names another memory
  },
  {
    name: 'configuration-not-noted',
    file: 'protocol/members.ts',
    from: 'const configuration = state.change?.next ?? state.configuration;',
    to: 'const configuration = state.settings.configuration ?? null;',
    args: ['--seed', '77000251', '--memory'],
    by: 'liveness',
  },
  {
    name: 'proof-by-writes',
    edits: [
      {
        file: 'protocol/node-progress.ts',
        from: "if (call === 'claim' || admission.configuration === null) admission.proof |= 1 << by;",
        to: 'admission.proof |= 1 << by;',
      },
      {
        file: 'protocol/members.ts',
        from: 'if (node !== changed && isMember(state, node)) configurationChanged(progress);',
        to: '',
      },
    ],
    args: ['--members', '--seed', '25', '--seeds', '2'],
    by: 'one-block-per-height',
  },
  {
    name: 'noted-on-itself',
    edits: [
      {
        file: 'protocol/admission.ts',
        from: 'bitsOf(admission.proof) >= state.settings.quorum',
        to: 'bitsOf(admission.proof) + 1 >= state.settings.quorum',
      },
      {
        file: 'protocol/admission.ts',
        from: 'const quiet = (state.gateUntil !== null || state.settings.quiet === true) && !state.inflight;',
        to: 'const quiet = true;',
      },
    ],
    args: ['--members', '--seed', '49', '--seeds', '26'],
    by: 'one-block-per-height',
  },
  {
    name: 'any-memory-counts',
    edits: [
      {
        file: 'protocol/node-progress.ts',
        from: "named === null || (named !== '' && named === incarnation)",
        to: "named === null || incarnation !== ''",
      },
      {
        file: 'nodes/probe.ts',
        from: 'else if (member && member.memory !== view.incarnation)',
        to: "else if (member && view.incarnation === '')",
      },
    ],
    mutant: 'noConfigCheck',
    args: ['--members', '--seed', '25', '--seeds', '3'],
    by: 'one-block-per-height',
  },
  {
    name: 'wall-clock-as-block-time',
    file: 'sequencer/sequencer.ts',
    from: 'timestamp: () => this.chainTime.next(store.head().timestamp, clock.now())',
    to: 'timestamp: () => Math.max(store.head().timestamp, clock.wall())',
    args: ['--members', '--seed', '77'],
    by: 'acknowledged',
  },
  {
    name: 'run-id-only',
    mutant: 'oldRunOnly',
    args: ['--members', '--memory', '--seed', '3'],
    by: 'one-block-per-height',
  },
  // Second lines of defence: without one of these rules, another rule still prevents harm (docs/PROOF.md names it).
  {
    name: 'unadmitted-nodes-counted',
    file: 'sequencer/follow/follower.ts',
    from: "view?.admission === 'admitted' &&",
    to: 'view !== null &&',
    args: ['--seed', '5000', '--memory', '--seeds', '12'],
    by: '',
  },
  {
    name: 'admitted-without-proof',
    file: 'protocol/admission.ts',
    from: '!quiet || !alone || !proven(state, admission)',
    to: '!quiet || !alone',
    args: ['--seed', '5000', '--memory', '--seeds', '12'],
    by: '',
  },
  { name: 'node-no-claimant-rule', mutant: 'noClaimantRule', args: ['--play', 'uneven', '--seeds', '3'], by: '' },
];
