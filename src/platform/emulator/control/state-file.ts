import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { ConfigError } from '../../../http/config';
import { describeThrown, systemCode } from '../../../http/errors';
import type { EmulatorContext } from '../context';
import { MAX_STATE_BYTES, readState, restoreState, saveState } from './saved-state';

const EVERY_MS = 60_000;

/**
 * Restores the state that a file has, if it is there, and writes the state to it every minute, when it has changed.
 * @returns ends that, and writes it a last time.
 * @throws ConfigError when it cannot be read, or has something else, or cannot be written. It stays as it is then.
 */
export function openStateFile(context: EmulatorContext, path: string): { close(): void } {
  const { log } = context;
  const fault = (...whys: string[]) =>
    new ConfigError(whys.map((why) => `EMULATOR_STATEFILE: ${path}: ${why}`));
  let written = readText();
  if (written === undefined) {
    context.uploads.keepOnly([]);
    try {
      write();
    } catch (thrown) {
      throw fault(
        `cannot be written (${systemCode(thrown)}); name a file in a folder that this user may write`,
      );
    }
  } else {
    const read = readState(parsed(written));
    if (!read.ok) throw fault(...read.problems.map(({ description }) => description));
    const missing = restoreState(context, read.value);
    log.info('state restored', { path, bytes: written.length, missingFiles: missing.length });
  }
  const timer = setInterval(save, EVERY_MS).unref();
  return {
    close() {
      clearInterval(timer);
      save();
    },
  };

  function readText(): string | undefined {
    try {
      const { size } = statSync(path);
      if (size > MAX_STATE_BYTES)
        throw fault(`has ${size} bytes, and a state has at most ${MAX_STATE_BYTES}; name another file`);
      return readFileSync(path, 'utf8');
    } catch (thrown) {
      if (thrown instanceof ConfigError) throw thrown;
      if (systemCode(thrown) === 'ENOENT') return undefined;
      throw fault(`cannot be read (${systemCode(thrown)}); name a file that this user may read`);
    }
  }

  function parsed(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      throw fault('is not JSON, or was cut; restore a copy, or remove it to start without a state');
    }
  }

  /** A file that cannot be written, as on a full disk, is no reason to stop. */
  function save(): void {
    try {
      write();
    } catch (thrown) {
      log.error('state not written', { path, cause: describeThrown(thrown) });
    }
  }

  /** The file is the former state or the new one, whenever the process ends. It has secrets. */
  function write(): void {
    const text = JSON.stringify({ saved: saveState(context) });
    if (text === written) return;
    mkdirSync(dirname(path), { recursive: true });
    const temporary = `${path}.new`;
    const file = openSync(temporary, 'w', 0o600);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
    written = text;
  }
}
