import { randomBytes } from 'node:crypto';
import { PassThrough, Readable, Writable } from 'node:stream';
import { runCli } from '../../src/cli/run';
import type { Environment } from '../../src/http/config';
import { API_KEY } from './api-key';

export interface CliRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  /** The sidecar that its environment names, with the key for it. */
  readonly sidecar?: { readonly url: string };
  readonly env?: Environment;
  readonly cwd: string;
  readonly stdin?: string | Buffer;
  /** Makes standard input, output and error a terminal; the keys are typed when the program asks. */
  readonly typed?: string;
  readonly interrupt?: AbortSignal;
  /** Called with each pause that the program makes; it makes none. */
  readonly onWait?: (ms: number) => void;
  readonly now?: () => Date;
  /** In place of the standard output that is answered. */
  readonly output?: Writable;
}

/** The end of a call that was refused, with an error for each sentence. */
export function refused(code: number, ...sentences: readonly string[]): CliRun {
  return { code, stdout: '', stderr: sentences.map((sentence) => `error: ${sentence}\n`).join('') };
}

/** How a call ended: its code and the last line of its standard error. */
export const endOf = ({ code, stderr }: CliRun) => [code, stderr.split('\n').at(-2)];

/** The end of a call with `--json`, its document read. */
export const jsonOf = ({ code, stdout, stderr }: CliRun) => ({ code, stderr, document: JSON.parse(stdout) });

/** Runs the command line within this process. Nothing of this process's own environment reaches it. */
export async function cli(argv: readonly string[], options: CliOptions): Promise<CliRun> {
  const { sidecar, env, cwd, stdin = '', typed, interrupt, onWait, output } = options;
  const toSidecar = sidecar && { PACKAGERDRM_URL: sidecar.url, PACKAGERDRM_APIKEY: API_KEY, NO_COLOR: '1' };
  const isTTY = typed !== undefined;
  const stdout = new Sink(isTTY);
  const stderr = new Sink(isTTY);
  const input = isTTY ? new PassThrough() : Readable.from([Buffer.from(stdin)]);
  if (input instanceof PassThrough) {
    stderr.onText = (text) => {
      if (text.includes('[y/N]')) input.write(`${typed}\n`);
    };
  }
  const code = await runCli({
    argv,
    version: '1.2.3',
    env: { ...toSidecar, ...env },
    cwd,
    stdin: Object.assign(input, { isTTY }),
    stdout: output ?? stdout,
    stderr,
    interrupted: interrupt ?? new AbortController().signal,
    random: randomBytes,
    wait: async (ms) => onWait?.(ms),
    now: options.now ?? (() => new Date(0)),
  });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

class Sink extends Writable {
  text = '';
  onText: ((text: string) => void) | undefined;

  constructor(readonly isTTY: boolean) {
    super({
      write: (chunk, _encoding, done) => {
        this.text += String(chunk);
        this.onText?.(String(chunk));
        done();
      },
    });
  }
}
