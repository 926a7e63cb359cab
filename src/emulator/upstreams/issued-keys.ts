import type { ClearKey } from '../../drm/clearkey';

/** The keys that the provider gave out since its start, by key id. Over its limit, the ones asked for least recently go. */
export class IssuedKeys {
  readonly #limit: number;
  readonly #keys = new Map<string, ClearKey>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  remember(issued: ClearKey): void {
    const name = nameOf(issued.keyId);
    this.#keys.delete(name);
    this.#keys.set(name, issued);
    const [oldest] = this.#keys.keys();
    if (this.#keys.size > this.#limit && oldest !== undefined) this.#keys.delete(oldest);
  }

  find(keyId: Uint8Array): ClearKey | undefined {
    return this.#keys.get(nameOf(keyId));
  }

  clear(): void {
    this.#keys.clear();
  }
}

function nameOf(keyId: Uint8Array): string {
  return Buffer.from(keyId).toString('hex');
}
