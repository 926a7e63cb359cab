import { HttpError, systemCode } from '../../http/errors';

const REASONS: Readonly<Record<string, string>> = {
  EROFS: 'the folder is mounted read-only',
  EACCES: 'the user of this service may not use the folder or the file',
  EPERM: 'the user of this service may not use the folder or the file',
  ENOENT: 'the folder is gone',
  ENODEV:
    'another file system is at its path than at the start; mount the one of the start again, or restart the service if this is the right one',
  ENOTDIR: 'the path of the folder is not a folder',
  EIO: 'the disk reports an error',
  ESTALE: 'the network file system has lost the folder',
  ENOTCONN: 'the file system that was mounted there is gone',
  ETIMEDOUT: 'the network file system does not answer',
  EHOSTDOWN: 'the network file system does not answer',
  ENAMETOOLONG: 'the path is too long for the file system',
  ELOOP: 'the path holds a loop of links',
};

/** Turns a file system's error into the answer for it; an `HttpError` and what is no system error pass unchanged. */
export function toStorageError(doing: 'read' | 'write', thrown: unknown): unknown {
  const code = systemCode(thrown);
  if (thrown instanceof HttpError || code === undefined || !/^E[A-Z0-9]+$/.test(code)) return thrown;
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    const description =
      'There is no space left for key files; none was damaged. Free some space and try again.';
    return new HttpError(507, { code: 'insufficient_storage', description }, { cause: thrown });
  }
  if (code === 'EMFILE' || code === 'ENFILE') {
    const description =
      'The service has no file descriptor left. Try again, or raise its limit of open files.';
    return new HttpError(503, { code: 'too_many_open_files', description }, { cause: thrown });
  }
  const reason = REASONS[code];
  if (reason === undefined) return thrown;
  const verb = doing === 'read' ? 'readable' : 'writable';
  const description = `The key-file folder is not ${verb}: ${reason} (${code}). Check PACKAGERDRMAPI_KEYFILESPATH, its mount and its owner.`;
  return new HttpError(500, { code: `key_files_not_${verb}`, description }, { cause: thrown });
}
