import { HttpError } from '../../../src/http/errors';
import { toStorageError } from '../../../src/sidecar/storage/key-file-store';

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: at /a/path`), { code });
}

function parts(thrown: unknown) {
  if (!(thrown instanceof HttpError)) return thrown;
  const { status, problems, cause } = thrown;
  return { status, problems, cause };
}

const CHECK = 'Check PACKAGERDRMAPI_KEYFILESPATH, its mount and its owner.';

test.each([
  ['EROFS', 'the folder is mounted read-only'],
  ['EACCES', 'the user of this service may not use the folder or the file'],
  ['EPERM', 'the user of this service may not use the folder or the file'],
  ['ENOENT', 'the folder is gone'],
  ['ENOTDIR', 'the path of the folder is not a folder'],
  ['EIO', 'the disk reports an error'],
  ['ESTALE', 'the network file system has lost the folder'],
  ['ELOOP', 'the path holds a loop of links'],
])('says what %s means and where to look, and keeps the cause for the log', (code, reason) => {
  const cause = systemError(code);
  for (const verb of ['readable', 'writable']) {
    const problem = {
      code: `key_files_not_${verb}`,
      description: `The key-file folder is not ${verb}: ${reason} (${code}). ${CHECK}`,
    };
    const error = toStorageError(verb === 'readable' ? 'read' : 'write', cause);
    expect(parts(error)).toEqual({ status: 500, problems: [problem], cause });
  }
});

test.each(['ENOSPC', 'EDQUOT'])('answers 507 to %s', (code) => {
  const cause = systemError(code);
  const description =
    'There is no space left for key files; none was damaged. Free some space and try again.';
  expect(parts(toStorageError('write', cause))).toEqual({
    status: 507,
    problems: [{ code: 'insufficient_storage', description }],
    cause,
  });
});

test.each([
  ['an HttpError', new HttpError(409, { code: 'not_a_key_file', description: 'It is a link.' })],
  ['a system error that says nothing of the folder', systemError('EXDEV')],
  ['an error of Node', systemError('ERR_INVALID_ARG_TYPE')],
  ['an error without a code', new RangeError('outside')],
  ['what is no error', undefined],
])('passes %s unchanged', (_what, thrown) => {
  expect(toStorageError('write', thrown)).toBe(thrown);
});
