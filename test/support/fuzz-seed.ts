// Imported by tests that fuzz: fast-check draws from the commit, not from the clock (it prints its seed when it finds
// something).
import { configureGlobal } from 'fast-check';
import { commitSeed } from './commit-seed.js';

configureGlobal({ seed: commitSeed() % 2 ** 31 });
