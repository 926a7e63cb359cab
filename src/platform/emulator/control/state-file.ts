import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { ConfigError } from '../../../http/config';
import { describeThrown, systemCode } from '../../../http/errors';
import type { EmulatorContext } from '../context';
import { MAX_STATE_BYTES, readState, restoreState, saveState } from './saved-state';

const EVERY_MS = 60_000;

/**
 * Restores the state that a file has, if it is there, and writes the state to it every minute, when it has changed.
 * @param maxBytes a larger state is not written, since the next start would refuse it.
 * @returns ends that, and writes it a last time.
 * @throws ConfigError when it cannot be read or written, or has something else. It stays as it is then.
 */
export function openStateFile(
  context: EmulatorContext,
  path: string,
  maxBytes = MAX_STATE_BYTES,
): { close(): void } {
  const { log } = context;
  const fault = (...whys: string[]) =>
    new ConfigError(whys.map((why) => `EMULATOR_STATEFILE: ${path}: ${why}`));
  let written = '';
  try {
    const size = existsSync(path) ? statSync(path).size : 0;
    if (size > maxBytes)
      throw fault(`has ${size} bytes, and a state has at most ${maxBytes}; name another file`);
    if (size > 0) {
      written = readFileSync(path, 'utf8');
      const read = readState(JSON.parse(written));
      if (!read.ok) throw fault(...read.problems.map(({ description }) => description));
      const missing = restoreState(context, read.value);
      log.info('state restored', { path, bytes: size, missingFiles: missing.length });
    } else {
      context.uploads.keepOnly([]);
      write();
    }
  } catch (thrown) {
    if (describeThrown(thrown).name === 'SyntaxError')
      throw fault('is not JSON, or was cut; restore a copy, or remove it to start without a state');
    const code = systemCode(thrown);
    throw code === undefined
      ? thrown
      : fault(`cannot be used (${code}); name a file that this user may write`);
  }
  const timer = setInterval(save, EVERY_MS).unref();
  return {
    close() {
      clearInterval(timer);
      save();
    },
  };

  /** A file that cannot be written, as on a full disk, is no reason to stop. */
  function save(): void {
    try {
      write();
    } catch (thrown) {
      log.error('state not written', { path, cause: describeThrown(thrown) });
    }
  }

  /** The file has the former state or the new one, whenever the process ends. It has secrets. */
  function write(): void {
    const text = JSON.stringify({ saved: saveState(context) });
    if (text === written) return;
    const bytes = Buffer.byteLength(text);
    if (bytes > maxBytes)
      throw new Error(
        `The state has ${bytes} bytes, and the next start reads at most ${maxBytes}; delete some media. The file keeps the last state that had room.`,
      );
    mkdirSync(dirname(path), { recursive: true });
    const temporary = `${path}.new`;
    writeFileSync(temporary, text, { mode: 0o600, flush: true });
    renameSync(temporary, path);
    written = text;
  }
}
