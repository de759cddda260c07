// One entry of the catalogue behind `seq explain`.
export interface Code {
  /** What it means, one or two sentences. */
  meaning: string;
  causes: string[];
  /** What to do; commands where there are any. */
  todo: string[];
}
