import { parseArgs } from 'node:util';

export type DemoOptions =
  | { readonly ok: true; readonly once: boolean; readonly help: boolean }
  | { readonly ok: false; readonly fault: string };

/** Reads the command line's arguments; an unknown one is a fault that names it. */
export function readDemoOptions(args: readonly string[]): DemoOptions {
  try {
    const options = {
      once: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    } as const;
    const { values } = parseArgs({ args: [...args], options, strict: true });
    return { ok: true, ...values };
  } catch (thrown) {
    return {
      ok: false,
      fault: messageOf(thrown),
    };
  }
}

/** Not `instanceof Error`, which fails across realms. */
function messageOf(thrown: unknown): string {
  const known = typeof thrown === 'object' && thrown !== null && 'message' in thrown;
  return known ? String(thrown.message) : 'The arguments cannot be read.';
}
