import { createHash } from 'node:crypto';
import type { Express } from 'express';
import { formatUuid } from '../../drm/bytes';
import type { Clock } from './clock';
import type { EmulatorConfig } from './config';

const LETTERS_AND_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** A letter or a digit for each byte. */
export function textOf(bytes: Buffer): string {
  return Array.from(bytes, (byte) => LETTERS_AND_DIGITS[byte % LETTERS_AND_DIGITS.length]).join('');
}

/** The time of the platform in a run with a seed, until the control port moves it. */
export const SEEDED_TIME = new Date('2030-01-01T00:00:00Z');

/** Draws for one purpose do not depend on those for others, such as the ids of requests. */
type Purpose = 'id' | 'feed' | 'control' | 'resource' | 'secret' | 'bytes';

/** Replaces random source and measured time in a run with a seed: the same draws give the same values. */
export class SeededSource {
  #drawn: Partial<Record<Purpose, number>> = {};

  constructor(private readonly seed: number) {}

  get drawn(): Readonly<Record<string, number>> {
    return this.#drawn;
  }

  /** Continues after these draws; without any, from the start. */
  reset(drawn: Readonly<Record<string, number>> = {}): void {
    this.#drawn = { ...drawn };
  }

  readonly dependencies = {
    now: () => 0,
    newId: (purpose: Purpose = 'id') => formatUuid(this.#draw(purpose, 16)),
    newResourceId: () => textOf(this.#draw('resource', 8)),
    newSecret: () => textOf(this.#draw('secret', 40)),
    newBytes: (count: number) => this.#draw('bytes', count),
  };

  #draw(purpose: Purpose, outputLength: number): Buffer {
    const count = (this.#drawn[purpose] ?? 0) + 1;
    this.#drawn[purpose] = count;
    return createHash('shake256', { outputLength }).update(`${this.seed} ${purpose} ${count}`).digest();
  }
}

/** Dates the answers of a run with a seed by its clock. */
export function setDateHeader(
  app: Express,
  { seeds, clock }: { readonly seeds: Pick<EmulatorConfig, 'seed'>; readonly clock: Clock },
): void {
  if (seeds.seed === undefined) return;
  app.use((_request, response, next) => {
    response.setHeader('date', clock.now().toUTCString());
    next();
  });
}
