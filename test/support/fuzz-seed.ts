// For tests that fuzz: fast-check takes its seed from the commit, not from the clock. It prints the seed when it finds
// something.
import { configureGlobal } from 'fast-check';
import { commitSeed } from './commit-seed.js';

configureGlobal({ seed: commitSeed() % 2 ** 31 });
