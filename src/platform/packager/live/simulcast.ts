import { maskerOf } from '../../../http/secret';
import { type RunningProgram, runProgram, secretsOfAddress } from '../running-program';
import type { SessionDependencies } from './session';

/** Bytes that may wait for a slow target; above that, it is started again. */
const MAX_WAITING = 8 * 1024 * 1024;
const FIRST_DELAY_MS = 1000;
const LONGEST_DELAY_MS = 30_000;
/** A target that took the stream this long starts again at the first delay. */
const STEADY_MS = 60_000;

/** Sends a transport stream on to one RTMP server, and goes on trying. It never delays the writer. */
export class Simulcast {
  readonly #address: string;
  readonly #options: SessionDependencies;
  #program: RunningProgram | undefined;
  #startedAt = 0;
  #notBefore = 0;
  #delayMs = FIRST_DELAY_MS;
  #isOver = false;

  constructor(address: string, options: SessionDependencies) {
    this.#address = address;
    this.#options = options;
  }

  /** A target that is begun amid the stream gets it from the next key frame on. */
  write(bytes: Buffer): void {
    const { now } = this.#options;
    if (this.#isOver) return;
    if (!this.#program && now() >= this.#notBefore) this.#start();
    if (!this.#program) return;
    this.#program.stdin.write(bytes);
    if (this.#program.stdin.writableLength > MAX_WAITING) this.#program.kill();
  }

  /** Sends what waits to the target, for at most five seconds, and ends. */
  end(): void {
    this.#isOver = true;
    this.#program?.stdin.end();
    const program = this.#program;
    const late = setTimeout(() => program?.kill(), 5000);
    late.unref();
    void program?.ended.then(() => clearTimeout(late));
  }

  #start(): void {
    const { programs, log, now } = this.#options;
    const args = [
      ...['-hide_banner', '-nostdin', '-loglevel', 'error', '-f', 'mpegts', '-i', 'pipe:0', '-c', 'copy'],
      ...['-bsf:a', 'aac_adtstoasc', '-rw_timeout', '15000000', '-f', 'flv', this.#address],
    ];
    const secrets = secretsOfAddress(this.#address);
    const target = maskerOf(secrets)(this.#address);
    const program = runProgram(programs.ffmpeg, args, { cwd: programs.folder, env: programs.env, secrets });
    this.#program = program;
    this.#startedAt = now();
    program.stdout.resume();
    log.info('simulcast started', { target });
    void program.ended.then(({ notStarted, lastWords }) => {
      if (this.#program === program) this.#program = undefined;
      if (this.#isOver) return;
      if (now() - this.#startedAt > STEADY_MS) this.#delayMs = FIRST_DELAY_MS;
      const [delayMs, reason] = [this.#delayMs, notStarted ?? lastWords];
      log.warn('simulcast ended; the packager tries again', { target, reason, delayMs });
      this.#notBefore = now() + delayMs;
      this.#delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS);
    });
  }
}
